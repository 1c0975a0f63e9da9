"""Which process holds a lock, as the kernel lists it; and that a lock is not waited for without end."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from lakebound.control.folder import locked
from lakebound.control.lock_holder import locking
from lakebound.errors import LockHeldError

DEVICE = os.makedev(0xFE, 0)
LISTING = """\
1: FLOCK  ADVISORY  WRITE 19219 fe:00:9986576 0 EOF
1: -> FLOCK  ADVISORY  WRITE 20000 fe:00:9986576 0 EOF
2: FLOCK  ADVISORY  READ 19892 fe:00:9986576 0 EOF
3: POSIX  ADVISORY  READ 19219 fe:00:9986576 128 128
4: FLOCK  ADVISORY  WRITE 7 fe:01:9986576 0 EOF
5: FLOCK  ADVISORY  WRITE 8 fe:00:99865760 0 EOF
6: POSIX
"""


def test_those_that_hold_it_are_named_and_those_that_wait_are_not() -> None:
    assert list(locking(LISTING, DEVICE, 9986576)) == [19219, 19892]
    assert list(locking("", DEVICE, 9986576)) == []


def test_a_lock_that_is_held_is_not_waited_for_without_end(tmp_path: Path) -> None:
    path = tmp_path / "lease.json"
    with locked(path):
        assert (tmp_path / "lease.json.lock").stat().st_mode & 0o777 == 0o600
    with open(tmp_path / "lease.json.lock") as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        with pytest.raises(LockHeldError, match=r"lease.json.lock has been locked by .* for more than 0.1 s"):
            with locked(path, deadline_seconds=0.1):
                pass
    with locked(path):
        pass
