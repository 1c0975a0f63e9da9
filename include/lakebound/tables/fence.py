"""The number in a Delta log's ``txn``: it grows with each commit, and the log refuses one that does not. Pure."""

from __future__ import annotations

_NUMBERS_PER_EPOCH = 2**40

MAX_EPOCH = 2**23 - 1
"""The number of an epoch beyond has more than 64 bits."""


def fence_number(epoch: int, commit: int) -> int:
    """Return the number of a writer's nth commit in an epoch: larger than every number of an earlier epoch."""
    return epoch * _NUMBERS_PER_EPOCH + commit


def epoch_of(number: int) -> int:
    """Return the epoch that a number was made in."""
    return number // _NUMBERS_PER_EPOCH
