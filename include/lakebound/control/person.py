"""Users of the operating system by name: who asks, as it stands in the desired state and in incidents, and whose a file is."""

from __future__ import annotations

import os
import pwd


def operating_system_user() -> str:
    """Return the name of this process's user; not from the environment, which anybody can set.

    A user identifier without a name, as containers have, is returned as a number. Behind ``sudo`` both users are named.
    """
    uid = os.getuid()
    name = user_name(uid) or f"uid {uid}"
    behind = os.environ.get("SUDO_USER") if uid == 0 else None
    return f"{name} (sudo by {behind})" if behind else name


def user_name(uid: int) -> str | None:
    """Return the name of a user of this machine; None for an identifier without one, as containers have."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return None
