"""Whether a secret that a pipeline names may be read: its author could send any variable or file to a broker of their own."""

from __future__ import annotations

from lakebound.settings import SECRET_PREFIX, YamlAccess
from lakebound.spec.connection import SecretRef


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
