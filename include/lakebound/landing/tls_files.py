"""The PEM files of a connection's TLS: read and checked before a client gets them, so that a mistake names its field."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from lakebound.errors import TlsFileError
from lakebound.spec.named_files import UnusableFileError, certificate_path, read_certificates

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

_KEY_FIELD = "tls_key_file"
_PASSWORD_FIELD = "tls_key_password"
_BEGIN = "-----BEGIN CERTIFICATE-----"


def check_authority(file: str, field: str) -> str:
    """Return the path of a file that looks as if it held certificates of authorities.

    They are not parsed: a bundle may hold old ones that only OpenSSL and Java read.

    Raises:
        TlsFileError: It does not, or cannot be read.
    """
    if _BEGIN not in _text(file, field):
        raise _no_certificate(file, field)
    return str(certificate_path(file))


def read_chain(file: str, field: str) -> str:
    """Return the text of a file with the client's certificate, and those of its intermediate authorities.

    Raises:
        TlsFileError: It holds no certificate, cannot be read, or its certificate has expired.
    """
    text = _text(file, field)
    ends = _certificates(text, file, field)[0].not_valid_after_utc
    if ends < datetime.datetime.now(datetime.UTC):
        raise TlsFileError(field, f"the certificate in {file} expired at {ends:%Y-%m-%d %H:%M} UTC; put a new one there")
    return text


def read_key(text: str, password: str | None, certificate_file: str) -> str:
    """Return a private key as PKCS #8 without a password: of all formats, the one that every client reads.

    Args:
        text: The key as PEM.
        password: Its password, if it is encrypted.
        certificate_file: The certificate that must belong to it.

    Raises:
        TlsFileError: It is no private key, its password is wrong, or the certificate is of another key.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    is_encrypted = "ENCRYPTED" in text
    if is_encrypted and password is None:
        raise TlsFileError(_PASSWORD_FIELD, f"is missing: the private key in {_KEY_FIELD} is encrypted")
    try:
        key = serialization.load_pem_private_key(text.encode(), password.encode() if is_encrypted and password else None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # Without a cause: it might quote the key.
        if is_encrypted:
            raise TlsFileError(_PASSWORD_FIELD, f"is not the password of the private key in {_KEY_FIELD}") from None
        raise TlsFileError(_KEY_FIELD, "is not a private key in PEM (it begins with -----BEGIN PRIVATE KEY-----)") from None
    chain = read_chain(certificate_file, "tls_certificate_file")
    if _certificates(chain, certificate_file, "tls_certificate_file")[0].public_key() != key.public_key():
        raise TlsFileError(_KEY_FIELD, f"is not the private key of the first certificate in {certificate_file}")
    plain = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return plain.decode()


def _text(file: str, field: str) -> str:
    try:
        return read_certificates(file)
    except UnusableFileError as exc:
        raise TlsFileError(field, f"{file}: {exc}") from None


def _certificates(text: str, file: str, field: str) -> list[Certificate]:
    from cryptography.x509 import load_pem_x509_certificates

    try:
        return load_pem_x509_certificates(text.encode())
    except ValueError:
        raise _no_certificate(file, field) from None


def _no_certificate(file: str, field: str) -> TlsFileError:
    return TlsFileError(field, f"{file} holds no certificate in PEM (it begins with {_BEGIN})")
