"""For how long another machine's sign of life has not changed, by this machine's own clock.

Clocks of two machines may differ by more than a lease lasts. So a sign from another machine is judged by whether it *changes*:
this machine remembers which sign it has seen since when, by a clock that nobody sets. That memory lies on a RAM disk: it is as
old as the clock, as both begin when the machine is started, and every process of the machine shares it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lakebound.control.fallback_files import ram_folder
from lakebound.control.folder import StateFile, read_json, write_json
from lakebound.frozen import FrozenRecord


class Sight(FrozenRecord):
    """A sign, and since when this machine sees it.

    Attributes:
        sign: Any text that each sign of life changes.
        since: Seconds since this machine was started.
    """

    sign: str
    since: float


def look(before: Sight | None, sign: str, uptime_seconds: float) -> Sight:
    """Return what this machine remembers after another look. Pure.

    Args:
        before: What it remembered; None at the first look.
        sign: The sign that is there.
        uptime_seconds: Time since this machine was started.
    """
    is_known = before is not None and before.sign == sign and before.since <= uptime_seconds
    return before if before is not None and is_known else Sight(sign=sign, since=uptime_seconds)


def unchanged_seconds(
    file: StateFile, sign: str, *, uptime: Callable[[], float] | None = None, memory: Path | None = None
) -> float | None:
    """Look at a sign, and return for how long this machine has seen the same; 0 at the first look.

    Args:
        file: The file of the state that holds the sign: what is remembered goes with it.
        sign: The sign.
        uptime: Gives the time since this machine was started.
        memory: Where this machine remembers; default: a folder of this user's on a RAM disk.

    Returns:
        None where this machine cannot remember anything.
    """
    folder = memory or ram_folder(file.parent)
    if folder is None:
        return None
    remembered, now = folder / f"{file.name}.sight", (uptime or _uptime_seconds)()
    before = _read(remembered)
    sight = look(before, sign, now)
    try:
        if sight != before:
            write_json(remembered, sight.model_dump())
    except OSError:
        return None
    return now - sight.since


def _read(path: Path) -> Sight | None:
    try:
        body: Any = read_json(path)
        return None if body is None else Sight.model_validate(body)
    except (OSError, ValueError):
        return None


def _uptime_seconds() -> float:
    # It goes on while the machine is suspended, as the others' clocks do.
    return time.clock_gettime(time.CLOCK_BOOTTIME)
