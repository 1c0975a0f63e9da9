"""Commits that maintenance prepared and that another process may carry out: what each says, and what makes it stale. Pure.

Nothing in one is relative to a version that only its maker knows: who commits it checks, on the version that it follows, that
all that goes is still there, and carries on its own entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

from pydantic import Field, TypeAdapter

from lakebound.errors import LakeboundError
from lakebound.frozen import Frozen
from lakebound.ledger.entry import Entry
from lakebound.tables.target import LandingTarget


class StalePreparedError(LakeboundError, passes=True):
    """The table is no longer what a commit was prepared for. Nothing was written, and the handle is as it was."""

    def __init__(self, table: str, reason: str) -> None:
        super().__init__(
            f"table {table}: prepared files were not committed: {reason}; whoever prepared them looks at the table again"
        )


class RemovedFile(Frozen):
    """A data file that a Delta commit takes out of the table."""

    path: str = Field(description="As the log names it: relative to the table, as a URI.")
    size_bytes: int
    partition: Mapping[str, str | None]


class AddedFile(Frozen):
    """A data file that a Delta commit brings, in place of others."""

    name: str = Field(description="In the table's folder.")
    size_bytes: int
    partition: Mapping[str, str | None]
    stats: str = Field(description="Its statistics, as the log has them.")


class DeltaReplacement(Frozen):
    """Files of a Delta table in place of others; without files, a note in its history."""

    kind: Literal["delta_replacement"] = "delta_replacement"
    version: int = Field(description="The version in which all removed files are live.")
    digest: str = Field(description="Of that version's content, in hexadecimal.")
    operation: str = "OPTIMIZE"
    changes_data: bool = Field(default=False, description="Whether the new files lack rows that the others hold.")
    parameters: Mapping[str, str] = Field(default_factory=dict)
    metrics: Mapping[str, int] = Field(default_factory=dict)
    removed: tuple[RemovedFile, ...] = ()
    added: tuple[AddedFile, ...] = ()


class SnapshotExpiry(Frozen):
    """Snapshots of an Iceberg table that are to go."""

    kind: Literal["snapshot_expiry"] = "snapshot_expiry"
    snapshot_ids: tuple[int, ...]


class ManifestReplacement(Frozen):
    """A snapshot of an Iceberg table that replaces manifests by others, made for an older snapshot than the current one.

    Attributes:
        base: Id of the snapshot for which it was made.
        snapshot: It, as JSON; its list names the manifests of ``base`` but those that go, and those that come.
        removed: Locations of the manifests that go.
        added: Locations of the manifests that come.
    """

    kind: Literal["manifest_replacement"] = "manifest_replacement"
    table_uuid: str
    schema_id: int
    spec_id: int
    base: int
    base_totals: Mapping[str, str]
    snapshot: Mapping[str, Any]
    removed: tuple[str, ...]
    added: tuple[str, ...]


Prepared = Annotated[DeltaReplacement | SnapshotExpiry | ManifestReplacement, Field(discriminator="kind")]
_PREPARED: TypeAdapter[Prepared] = TypeAdapter(Prepared)


@runtime_checkable
class CommitsPrepared(Protocol):
    """A table that commits what maintenance prepared for it."""

    def commit_prepared(self, prepared: Prepared, entry: Entry) -> str:
        """Commit it with an entry that is carried on, and return the version."""


def to_text(prepared: Prepared) -> str:
    """Return a prepared commit as text."""
    return prepared.model_dump_json()


def parse(text: str) -> Prepared:
    """Return the prepared commit in a text.

    Raises:
        ValueError: It is none, or one of another version of Lakebound.
    """
    return _PREPARED.validate_json(text)


def commit_prepared(table: LandingTarget, prepared: Prepared, entry: Entry) -> str:
    """Commit what was prepared for a table, on the handle of the last ``read_ledger`` or ``commit``, and return the version.

    Args:
        table: The table.
        prepared: What was prepared.
        entry: Entry that the commit carries on.

    Raises:
        StalePreparedError: The table is no longer what it was prepared for, or it is for another kind of target.
        Exception: As ``LandingTarget.commit``: the outcome is then unknown until the ledger is read again.
    """
    if not isinstance(table, CommitsPrepared):
        raise StalePreparedError(table.spec.id, f"nothing can be prepared for a {table.spec.format}")
    return table.commit_prepared(prepared, entry)
