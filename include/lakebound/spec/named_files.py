"""Reading a file that YAML names: only a regular file of bounded size, in a folder that whoever runs Lakebound named.

A device, a pipe or a file without an end could otherwise stop a process that looks after every pipeline. Of a file elsewhere
not even its existence is told.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from lakebound.errors import NamedFileError
from lakebound.settings import YamlAccess, load_yaml_access

MOST_BYTES = 4 * 1024 * 1024
"""The certificates of all authorities of a system are about 250 kB."""


class UnusableFileError(ValueError):
    """A file that YAML names is not one that can be read; the text says why, without its content."""


def forbidden_certificate_file(file: str, access: YamlAccess) -> str | None:
    """Return why YAML may not name a file as certificates, and what to do; None where it may.

    Args:
        file: As it is written.
        access: What YAML may read of this machine.
    """
    if access.certificate_file(file) is not None:
        return None
    return (
        f"this file is not in a folder for certificates; put it into the folder of secrets, {access.secrets_folder}, or let "
        f"whoever runs Lakebound add its folder to LAKEBOUND_CERTIFICATES"
    )


def authority_path(file: str, field: str) -> str:
    """Return the path of a file with certificates of authorities, for a client that reads it itself.

    Args:
        file: As it is written.
        field: Full name of the field that names it, for messages.

    Raises:
        NamedFileError: It may not be read here, or cannot be.
    """
    try:
        return str(certificate_path(file))
    except UnusableFileError as exc:
        raise NamedFileError(field, f"{file}: {exc}") from None


def certificate_path(file: str) -> Path:
    """Return the path of a file with certificates, after a check that it may be read and can be.

    Raises:
        UnusableFileError: It may not be read here, or cannot be.
    """
    path = _allowed(file)
    _ = read_bounded(path)
    return path


def read_certificates(file: str) -> str:
    """Return the text of a file with certificates. Raises what ``certificate_path`` raises."""
    return read_bounded(_allowed(file))


def read_bounded(path: Path) -> str:
    """Return the text of a regular file.

    Raises:
        UnusableFileError: It is something else, is too large, cannot be read, or is not UTF-8.
    """
    try:
        # Without O_NONBLOCK, opening a pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError) as exc:
        raise UnusableFileError(getattr(exc, "strerror", None) or "cannot be read") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnusableFileError("is not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            text = file.read(MOST_BYTES + 1)
    except OSError as exc:
        raise UnusableFileError(exc.strerror or "cannot be read") from None
    finally:
        os.close(descriptor)
    if len(text) > MOST_BYTES:
        raise UnusableFileError(f"is larger than {MOST_BYTES // 1024 // 1024} MiB")
    try:
        return text.decode()
    except UnicodeDecodeError:
        # Without a cause: it holds the text.
        raise UnusableFileError("is not UTF-8 text") from None


def _allowed(file: str) -> Path:
    access = load_yaml_access()
    if forbidden := forbidden_certificate_file(file, access):
        raise UnusableFileError(forbidden)
    path = access.certificate_file(file)
    assert path is not None
    return path
