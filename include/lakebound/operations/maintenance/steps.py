"""What a maintenance run does, step by step: values that a plan holds, a report repeats, and an engine carries out."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from lakebound.frozen import Frozen


class _Step(Frozen):
    """Base of the steps.

    Attributes:
        table: ``format:name``.
        reason: Why, with the numbers that make it due.
        cost_bytes: Bytes of data files that it rewrites.
        files_removed: Live files, manifests or snapshots fewer, as far as can be foreseen.
    """

    table: str
    reason: str
    cost_bytes: int = 0
    files_removed: int = 0


class Compact(_Step):
    """Rewrite the small files of one partition as larger ones.

    Attributes:
        partition: Its values; empty for an unpartitioned table.
        below_bytes: Files of this size and above are left alone.
        target_file_bytes: Of the new files.
        order_by: Columns by which rows are ordered: Z-order for Delta, sort for Iceberg; empty: as they come.
        with_deletes: Iceberg: files that have delete files are rewritten, too, whatever their size.
    """

    kind: Literal["compact"] = "compact"
    partition: dict[str, str | None] = Field(default_factory=dict)
    below_bytes: int
    target_file_bytes: int
    order_by: tuple[str, ...] = ()
    with_deletes: bool = False


class CheckpointLog(_Step):
    """Delta: write a log checkpoint."""

    kind: Literal["checkpoint_log"] = "checkpoint_log"


class CleanLog(_Step):
    """Delta: delete log files that only versions before ``before_version`` need."""

    kind: Literal["clean_log"] = "clean_log"
    before_version: int


class Vacuum(_Step):
    """Delta: delete files that no version within the retention needs; FULL lists the folder, too."""

    kind: Literal["vacuum"] = "vacuum"
    mode: Literal["lite", "full"]
    retention_seconds: float


class RewriteManifests(_Step):
    """Iceberg: rewrite many manifests as few."""

    kind: Literal["rewrite_manifests"] = "rewrite_manifests"


class RewritePositionDeletes(_Step):
    """Iceberg: rewrite many position delete files as few, and drop those that delete nothing any more."""

    kind: Literal["rewrite_position_deletes"] = "rewrite_position_deletes"


class ExpireSnapshots(_Step):
    """Iceberg: expire exactly these snapshots, and delete what only they needed."""

    kind: Literal["expire_snapshots"] = "expire_snapshots"
    snapshot_ids: tuple[int, ...]


class RemoveOrphans(_Step):
    """Find files that no version names; ``quarantine`` moves them aside, and deletes what lay there long."""

    kind: Literal["remove_orphans"] = "remove_orphans"
    mode: Literal["dry_run", "quarantine"]
    older_than_ms: int
    delete_quarantined_before_ms: int


MaintenanceStep = Annotated[
    Compact | CheckpointLog | CleanLog | Vacuum | RewriteManifests | RewritePositionDeletes | ExpireSnapshots | RemoveOrphans,
    Field(discriminator="kind"),
]


class MaintenancePlan(Frozen):
    """The steps of one run, in their order.

    Attributes:
        steps: What is done.
        left: What was looked at and is not done, with the reason.
        warnings: Dangerous properties and the like, each with the fix.
    """

    pipeline: str
    at_ms: int
    steps: tuple[MaintenanceStep, ...] = ()
    left: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class _Counts(Frozen):
    """What changed in a table. Files: data files, manifests, snapshots or log files that were replaced, and by how many.

    Attributes:
        commits: Commits that were made.
        conflicts: Commits that were refused and tried again.
        removed: Paths that were deleted or moved to another folder (orphans in a dry run: found), at most a hundred.
        note: What a person should know.
    """

    files_before: int = 0
    files_after: int = 0
    bytes_rewritten: int = 0
    bytes_removed: int = 0
    commits: int = 0
    conflicts: int = 0
    removed: tuple[str, ...] = ()
    note: str = ""


class StepEffect(_Counts):
    """What an engine did in one attempt of a step.

    Attributes:
        problem: Why it failed after a part of its work; empty: it did not.
    """

    problem: str = ""

    @property
    def is_nothing(self) -> bool:
        """Whether there was nothing to do."""
        return self == StepEffect(note=self.note)

    def plus(self, other: StepEffect, note: str = "") -> StepEffect:
        """Return what this and another one did together, except what they removed.

        Args:
            other: What was done after it.
            note: What a person should know of both.
        """
        return StepEffect(
            files_before=self.files_before + other.files_before,
            files_after=self.files_after + other.files_after,
            bytes_rewritten=self.bytes_rewritten + other.bytes_rewritten,
            commits=self.commits + other.commits,
            conflicts=self.conflicts + other.conflicts,
            note=note,
        )


class StepReport(_Counts):
    """What one step did, over all its attempts, and how it ended.

    Attributes:
        outcome: ``done``; ``nothing``: there was nothing to gain any more; ``lost``: the stream or another run was faster, and
            the next run tries again; ``failed``: see ``problem``; ``skipped``: the run had ended before it.
        problem: Why it was not done, and what to do.
    """

    step: MaintenanceStep
    outcome: Literal["done", "nothing", "lost", "failed", "skipped"]
    seconds: float = 0.0
    problem: str = ""


class RunReport(Frozen):
    """What one run did: kept as a line of ``maintenance.jsonl``, an XCom and an asset event.

    Attributes:
        problem: Why the run as a whole came to nothing, said by who started it; empty where the application itself reported.
    """

    pipeline: str
    run_id: str
    started_at_ms: int
    ended_at_ms: int
    steps: tuple[StepReport, ...] = ()
    warnings: tuple[str, ...] = ()
    problem: str = ""
