"""What must not be taken from a table: its versions, who stands on which, and what earlier runs did. Frozen values."""

from __future__ import annotations

from pydantic import Field

from lakebound.frozen import Frozen
from lakebound.ledger.entry import EntryKind


class Version(Frozen):
    """One commit of a table.

    Attributes:
        version: Delta version or Iceberg snapshot id.
        parent: The version that it follows; None for the first, or where that is not kept.
        kind: Of the ledger entry in this commit; None where it carries none.
        is_referenced: Iceberg: a branch or tag points at it.
    """

    version: int
    committed_at_ms: int
    parent: int | None = None
    kind: EntryKind | None = None
    is_referenced: bool = False


class TablePast(Frozen):
    """A table's versions that are kept, oldest first.

    Attributes:
        current: The current one; None for a table without a commit.
        was_current: Of each version that a rewind or rollback left, until when it was the current one (ms).
        current_since: Iceberg: (since when, version) of what was current, oldest first, as far as that is logged. A rollback
            makes another one current than the last commit.
        pins: Reader's name to the version on which it stands.
        restarts: Delta: reader's name to the version from which the log must stay, so that it can be started again.
        checkpoints: Delta: versions that have a log checkpoint.
        is_undoing: Whether a redo is undone in part.
        problems: Why nothing may be taken away: a reader's checkpoint or an entry that cannot be read, and the like.
    """

    table: str
    versions: tuple[Version, ...] = ()
    current: int | None = None
    was_current: dict[int, int] = Field(default_factory=dict)
    current_since: tuple[tuple[int, int], ...] = ()
    pins: dict[str, int] = Field(default_factory=dict)
    restarts: dict[str, int] = Field(default_factory=dict)
    checkpoints: tuple[int, ...] = ()
    is_undoing: bool = False
    problems: tuple[str, ...] = ()

    def over_time(self) -> tuple[tuple[int, Version], ...]:
        """Return since when each version was what the table was, oldest first: what ``History.versions`` yields, and before it
        what is no longer logged."""
        known = {version.version: version for version in self.versions}
        logged = [(at_ms, known[version]) for at_ms, version in self.current_since if version in known]
        seen = {version.version for _, version in logged}
        return (*((one.committed_at_ms, one) for one in self.versions if one.version not in seen), *logged)


class PastRun(Frozen):
    """What is known of earlier maintenance of one table, from the reports that are kept.

    Attributes:
        compacted_at_ms: Partition name to the time of its last rewrite, successful or lost.
        fruitless: Partition name to how many rewrites in a row, the last ones, changed nothing: lost, failed or without gain.
        ordered_at_ms: Partition name to the time at which all of it was last put in order.
        vacuumed_at_ms: Last VACUUM, of either mode; None: never.
        vacuumed_full_at_ms: Last VACUUM FULL; None: never.
        orphans_at_ms: Last look for orphans; None: never.
    """

    table: str
    compacted_at_ms: dict[str, int] = Field(default_factory=dict)
    fruitless: dict[str, int] = Field(default_factory=dict)
    ordered_at_ms: dict[str, int] = Field(default_factory=dict)
    vacuumed_at_ms: int | None = None
    vacuumed_full_at_ms: int | None = None
    orphans_at_ms: int | None = None
