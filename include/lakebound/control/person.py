"""Who asks: the user of the operating system, as it stands in the desired state and in incidents."""

from __future__ import annotations

import os
import pwd


def operating_system_user() -> str:
    """Return the name of this process's user; not from the environment, which anybody can set.

    A user identifier without a name, as containers have, is returned as a number. Behind ``sudo`` both users are named.
    """
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = f"uid {uid}"
    behind = os.environ.get("SUDO_USER") if uid == 0 else None
    return f"{name} (sudo by {behind})" if behind else name
