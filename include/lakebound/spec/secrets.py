"""Reading a secret that YAML names, if it may be read.

Who writes a pipeline's YAML could otherwise send any variable or file to a broker of their own. This is the only reader.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from lakebound.errors import ForbiddenSecretError, MissingSecretError, UnusableSecretError
from lakebound.settings import SECRET_PREFIX, YamlAccess, load_settings, load_yaml_access
from lakebound.spec.connection import SecretRef
from lakebound.spec.installation_file import read_installation
from lakebound.spec.named_files import UnusableFileError, read_bounded
from lakebound.spec.secret_bindings import WAREHOUSES, SecretUse, binding_refusal

TOKEN = r"^[!-~](?:[ -~]*[!-~])?$"
"""What a token in a header of HTTP is made of: printable ASCII, with no blank at either end. A library refuses another one with
an error that quotes it."""
_TOKEN = re.compile(TOKEN)


def forbidden_secret(ref: SecretRef, access: YamlAccess) -> str | None:
    """Return why the secret may not be read, and what to do; None where it may. Says nothing of what the reference holds.

    Args:
        ref: Where the secret is said to be.
        access: What YAML may read of this machine.
    """
    if ref.env is not None and not access.may_be_secret(ref.env):
        return (
            f"this environment variable may not be read as a secret; whoever runs Lakebound can add its name to "
            f"LAKEBOUND_SECRETS, or call it {SECRET_PREFIX}…"
        )
    if ref.file is not None and access.secret_file(ref.file) is None:
        return (
            f"this file is not in the folder of secrets, {access.secrets_folder}; put it there, or let whoever runs Lakebound "
            f"set LAKEBOUND_SECRETS_FOLDER"
        )
    return None


def read_secret(ref: SecretRef, field: str, servers: tuple[str, ...], *, pipeline: str | None = None) -> str:
    """Return a secret of a pipeline, which is going to be sent to these servers.

    Whose it is was asked when the pipeline was loaded; bindings may have been changed since then.

    Args:
        ref: Where it is.
        field: Full name of the field that names it, for messages.
        servers: To whom it is sent, as host:port.
        pipeline: Who asks, where that is known.

    Raises:
        ForbiddenSecretError: It may not be read on this machine, or not be sent there.
        MissingSecretError: There is none.
    """
    access = load_yaml_access()
    bindings = read_installation(load_settings().pipelines).spec.secrets
    refused = forbidden_secret(ref, access) or binding_refusal(
        SecretUse(ref, servers), pipeline, bindings, access.secrets_folder
    )
    if refused:
        raise ForbiddenSecretError(field, refused)
    return _read(ref, field, access.secret_file(ref.file) if ref.file else None, access.secrets_folder)


def read_operators_secret(ref: SecretRef, field: str, folder: str) -> str:
    """Return a secret that a file of the operator's names; its file may lie in a folder that no pipeline may use.

    Args:
        ref: Where it is.
        field: Full name of the field that names it, for messages.
        folder: Of ``OPERATORS_FOLDERS``.

    Raises:
        ForbiddenSecretError: It may not be read on this machine.
        MissingSecretError: There is none.
    """
    access = load_yaml_access()
    if forbidden := forbidden_secret(ref, access):
        raise ForbiddenSecretError(field, forbidden)
    file = operators_file(ref.file, folder, access) if ref.file else None
    return _read(ref, field, file, access.secrets_folder / folder)


def read_warehouse_secret(ref: SecretRef, field: str) -> str:
    """Return a secret that ``warehouses.yaml`` names. Raises what ``read_operators_secret`` raises."""
    return read_operators_secret(ref, field, WAREHOUSES)


def read_token(ref: SecretRef, field: str, folder: str) -> str:
    """Return a secret that a file of the operator's names and that goes as it is into a header of HTTP.

    Args:
        ref: Where it is.
        field: Full name of the field that names it, for messages.
        folder: Of ``OPERATORS_FOLDERS``.

    Raises:
        ForbiddenSecretError: It may not be read on this machine.
        MissingSecretError: There is none.
        UnusableSecretError: It has other characters than printable ones of ASCII.
    """
    secret = read_operators_secret(ref, field, folder)
    if not _TOKEN.fullmatch(secret):
        raise UnusableSecretError(field, str(ref))
    return secret


def operators_file(file: str, folder: str, access: YamlAccess) -> Path | None:
    """Return a file of the operator's: in a folder of their own, or where older versions had it.

    Args:
        file: As it is named.
        folder: Of ``OPERATORS_FOLDERS``.
        access: Where the folder of secrets is.
    """
    own = access.secret_file(os.path.join(folder, file))
    return own if own is not None and own.is_file() else access.secret_file(file)


def told_place(ref: SecretRef, folder: Path) -> str:
    """Return where a secret is looked for, for messages.

    Args:
        ref: Where it is said to be.
        folder: In which its file belongs.
    """
    return str(ref) if ref.file is None or os.path.isabs(ref.file) else f"{ref} in the folder {folder}"


def _read(ref: SecretRef, field: str, file: Path | None, folder: Path) -> str:
    try:
        secret = (read_bounded(file) if file else os.environ.get(ref.env or "", "")).strip()
    except UnusableFileError:
        raise MissingSecretError(field, told_place(ref, folder)) from None
    if not secret:
        raise MissingSecretError(field, told_place(ref, folder))
    return secret
