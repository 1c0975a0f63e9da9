"""The certificates and keys with which a schema registry is reached over TLS."""

from __future__ import annotations

import ssl
from pathlib import Path

from lakebound.errors import MissingSecretError, NamedFileError
from lakebound.settings import load_yaml_access
from lakebound.spec.connection import SecretRef
from lakebound.spec.named_files import UnusableFileError, read_bounded
from lakebound.spec.registry import RegistrySpec
from lakebound.spec.secret_bindings import REGISTRIES
from lakebound.spec.secrets import operators_file, read_operators_secret, told_place


def tls_context(spec: RegistrySpec, field: str) -> ssl.SSLContext:
    """Return what checks the registry's certificate, and proves who asks where the file says how.

    Args:
        spec: The registry.
        field: Full name of its field, for messages.

    Raises:
        NamedFileError: A file of certificates or the key cannot be used.
        MissingSecretError: The key, or its password, is not where the file says.
        ForbiddenSecretError: Its password may not be read on this machine.
    """
    context = ssl.create_default_context(cadata=_certificates(spec.tls_ca_file, f"{field}.tls_ca_file"))
    if spec.tls_certificate_file is None or spec.tls_key_file is None:
        return context
    _certificates(spec.tls_certificate_file, f"{field}.tls_certificate_file")
    access = load_yaml_access()
    key = operators_file(spec.tls_key_file, REGISTRIES, access)
    if key is None or not key.is_file():
        place = told_place(SecretRef(file=spec.tls_key_file), access.secrets_folder / REGISTRIES)
        raise MissingSecretError(f"{field}.tls_key_file", place)
    encrypted = spec.tls_key_password
    password = read_operators_secret(encrypted, f"{field}.tls_key_password", REGISTRIES) if encrypted is not None else ""
    try:
        # Without a password OpenSSL would ask whoever sits at the terminal.
        context.load_cert_chain(spec.tls_certificate_file, key, lambda: password)
    except (ssl.SSLError, OSError, ValueError) as exc:
        reason = getattr(exc, "reason", None) or type(exc).__name__
        raise NamedFileError(
            f"{field}.tls_key_file", f"the key does not fit the certificate, or its password is wrong or missing: {reason}"
        ) from None
    return context


def _certificates(file: str | None, field: str) -> str | None:
    """Return the text of a file with certificates."""
    if file is None:
        return None
    try:
        text = read_bounded(Path(file).resolve())
    except UnusableFileError as exc:
        raise NamedFileError(field, f"{file}: {exc}") from None
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        raise NamedFileError(field, f"{file}: it has no certificate that can be read (PEM)") from None
    return text
