"""Reading a secret that YAML names, if it may be read.

Who writes a pipeline's YAML could otherwise send any variable or file to a broker of their own.
"""

from __future__ import annotations

import os

from lakebound.errors import ForbiddenSecretError, MissingSecretError
from lakebound.settings import SECRET_PREFIX, YamlAccess, load_yaml_access
from lakebound.spec.connection import SecretRef
from lakebound.spec.named_files import UnusableFileError, read_bounded


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


def read_secret(ref: SecretRef, field: str) -> str:
    """Return the secret that ``ref`` points to.

    Args:
        ref: Where it is.
        field: Full name of the field that names it, for messages.

    Raises:
        ForbiddenSecretError: It may not be read on this machine.
        MissingSecretError: There is none.
    """
    access = load_yaml_access()
    if forbidden := forbidden_secret(ref, access):
        raise ForbiddenSecretError(field, forbidden)
    file = access.secret_file(ref.file) if ref.file else None
    try:
        secret = read_bounded(file).strip() if file else os.environ.get(ref.env or "", "")
    except UnusableFileError:
        raise MissingSecretError(field, str(ref)) from None
    if not secret:
        raise MissingSecretError(field, str(ref))
    return secret
