"""The newest version of a Delta log as a writer has seen it, and what is checked against it wherever the log lies."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lakebound.errors import CommitRefusedError
from lakebound.storage.location import Location
from lakebound.tables.delta.checkpoints import list_log
from lakebound.tables.delta.log import commit_file

_COMMIT = re.compile(r"\d{20}\.json")


@dataclass(frozen=True)
class Tip:
    """The newest version of a log, as a writer has seen it.

    Attributes:
        version: Its number; -1 of a table that is not there.
        digest: Of its content.
        is_durable: Whether it is known to be on the disk.
    """

    version: int
    digest: bytes = b""
    is_durable: bool = False


NO_TABLE = Tip(-1, is_durable=True)


def read_tip(folder: Location, version: int, table: str) -> Tip:
    """Return a version of a log as what a commit may follow.

    Args:
        folder: The table's.
        version: The newest.
        table: Its name, for the message.

    Raises:
        CommitRefusedError: The log no longer has it.
    """
    try:
        return Tip(version, digest(commit_file(folder, version).read()))
    except FileNotFoundError as exc:
        raise CommitRefusedError(table, f"its log no longer has version {version}") from exc


def has_version(folder: Location, version: int) -> bool:
    """Whether a log has a version."""
    return commit_file(folder, version).exists()


def is_to_be_taken_back(folder: Location, tip: Tip, content: bytes) -> bool:
    """Whether a commit that does not follow what it was made for is there, and no reader would be led to it.

    Args:
        folder: The table's.
        tip: What it was made for.
        content: Of the commit.
    """
    own = commit_file(folder, tip.version + 1)
    if has_version(folder, tip.version + 2) or not own.exists():
        return False
    is_led_to = any(file.part is not None and file.version >= tip.version for file in list_log(folder))
    is_gap = not has_version(folder, tip.version)
    return not (is_gap and is_led_to) and own.read() == content


def check_new(names: Iterable[str], expected: Sequence[int], table: str) -> None:
    """Check that a log has no commits, or only begins with those that are expected.

    Args:
        names: What is in the log.
        expected: Versions.
        table: Its name, for the message.

    Raises:
        CommitRefusedError: Somebody else's commits are in it, whose first ones were cleaned up.
    """
    found = sorted(int(name[:20]) for name in names if _COMMIT.fullmatch(name))
    if tuple(found[: len(expected)]) != tuple(expected[: len(found)]) or (found and not expected):
        raise CommitRefusedError(table, f"its log has commits already, the first of them version {found[0]}")


def digest(content: bytes) -> bytes:
    """Return what stands for a commit's content."""
    return hashlib.blake2b(content, digest_size=16).digest()
