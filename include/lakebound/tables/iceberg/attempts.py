"""Attempts to commit one and the same change: which of them were refused for certain, so that what they wrote is nobody's.

An answer does not tell. A catalog behind a network may refuse a request that took effect, as a client or a gateway has repeated
it; and of a request without an answer nothing is known. The table's metadata tells, later on.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot


@dataclass(frozen=True)
class Attempt:
    """A snapshot that a catalog was asked to commit.

    Attributes:
        table: UUID of the table: there may be another one of its name since.
        snapshot: The snapshot.
        written: Addresses of what was written for it alone: its manifests and their list.
    """

    table: UUID
    snapshot: Snapshot
    written: tuple[str, ...]


def is_refused(attempt: Attempt, metadata: TableMetadata) -> bool:
    """Whether an attempt has not taken effect, and cannot any more. Pure.

    It could until the metadata has a snapshot with its sequence number or a later one: a request may still be under way, and a
    cache in front of the catalog may answer with metadata that is older than the attempt. From then on Iceberg refuses it for
    its number alone. Nor is it refused while the table is at the snapshot that it was to follow. That its own is not listed is
    not enough, as it may have expired since, and its files be those of snapshots that came after it. Then one of these has a
    parent that is not listed, or whose id the catalog has forgotten.

    Args:
        attempt: The attempt.
        metadata: Of the table, all snapshots included, read after the catalog was asked.
    """
    own, known = attempt.snapshot, {one.snapshot_id for one in metadata.snapshots}
    if attempt.table != metadata.table_uuid or own.snapshot_id in known:
        return False
    if own.parent_snapshot_id == metadata.current_snapshot_id:
        return False
    number = own.sequence_number or 0
    if not any((one.sequence_number or 0) >= number for one in metadata.snapshots):
        return False
    return all(one.parent_snapshot_id in known for one in metadata.snapshots if (one.sequence_number or 0) > number)


class Attempts:
    """The attempts of one change of which it is not known that they were refused."""

    def __init__(self) -> None:
        self._open: list[Attempt] = []

    @property
    def are_refused(self) -> bool:
        """Whether the change is not in the table, and cannot come into it."""
        return not self._open

    def begin(self, table: UUID, snapshot: Snapshot, written: Collection[str]) -> None:
        """Note an attempt, before the catalog is asked.

        Args:
            table: UUID of the table.
            snapshot: What is to be committed.
            written: Addresses of what was written for it alone.
        """
        self._open.append(Attempt(table, snapshot, tuple(written)))

    def end_refused(self) -> None:
        """Forget the last attempt: its refusal is certain, and what it wrote is deleted."""
        self._open.pop()

    def take_refused(self, metadata: TableMetadata) -> list[str]:
        """Forget the attempts that were refused, and return the addresses of what they wrote.

        Args:
            metadata: Of the table, as ``is_refused`` needs it.
        """
        refused = [one for one in self._open if is_refused(one, metadata)]
        self._open = [one for one in self._open if one not in refused]
        return [address for one in refused for address in one.written]
