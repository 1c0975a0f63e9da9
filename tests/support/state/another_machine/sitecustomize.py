"""Imported by every Python of a machine that a test makes up: its name, and the boot that it is in, are the machine's own."""

from __future__ import annotations

import os
import pathlib
import socket

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_read_text = pathlib.Path.read_text
_machine = os.environ.get("LAKEBOUND_TEST_MACHINE", "")


def _read_other(self: pathlib.Path, *arguments: object, **named: object) -> str:
    return f"boot of {_machine}\n" if str(self) == _BOOT_ID else _read_text(self, *arguments, **named)  # type: ignore[arg-type]


if _machine:
    socket.gethostname = lambda: _machine
    pathlib.Path.read_text = _read_other  # type: ignore[method-assign, assignment]
