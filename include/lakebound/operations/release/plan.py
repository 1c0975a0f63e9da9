"""What a release would try: the quarantine's records that the tables cover and have no row of. No Spark."""

from __future__ import annotations

from collections.abc import Sequence

from lakebound.errors import LakeboundError
from lakebound.formats.reasons import DECODER_REASONS
from lakebound.frozen import Frozen
from lakebound.inspection.proof.offset_arrays import size
from lakebound.operations.backfill.half_done import check_no_redo_unfinished
from lakebound.operations.backfill.tables import owned_table
from lakebound.operations.release.candidates import look_at, offsets_in
from lakebound.operations.release.reading import read_index
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.state import check_stateless
from lakebound.tables.places import Places
from lakebound.tables.table import open_table


class NotReplayableError(LakeboundError):
    """Records of a reason are to be landed that have landed before they were copied into quarantine."""

    def __init__(self, pipeline: str, reason: str) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: records with the reason {reason!r} are copies of rows that the tables already have; "
            f"only records that could not be decoded or transformed can be replayed: {', '.join(DECODER_REASONS)}"
        )


class NotReleasableError(LakeboundError):
    """The quarantine of a pipeline that writes to topics or stores is to be replayed: they would lack what the tables get."""

    def __init__(self, pipeline: str, others: Sequence[str]) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: a replay of the quarantine would land rows in its tables alone, and its other targets "
            f"({', '.join(others)}) would never get them; this is not available for pipelines with to_topics or to_stores"
        )


class ReleaseShare(Frozen):
    """What a release would try for one table.

    Attributes:
        table: Its id.
        lacking: Records to be decoded again.
        landed: Records of which it has rows.
        uncovered: Records that it does not cover yet, or of an earlier incarnation of the topic.
    """

    table: str
    lacking: int = 0
    landed: int = 0
    uncovered: int = 0


class ReleasePlan(Frozen):
    """What a release would try, as of now."""

    pipeline: str
    reasons: tuple[str, ...]
    tables: tuple[ReleaseShare, ...] = ()

    @property
    def is_due(self) -> bool:
        """Whether there is anything to try."""
        return any(share.lacking for share in self.tables)


def prepare(spec: PipelineSpec, places: Places, reason: str | None = None) -> ReleasePlan:
    """Return what a release would try.

    Args:
        spec: Pipeline whose quarantine is looked at.
        places: Where this machine keeps tables and state folders.
        reason: Only records that were quarantined for this reason count; None stands for all reasons of the decoder.

    Raises:
        WithStateError: The pipeline's rows are of windows.
        NotReleasableError: The pipeline has target topics or stores.
        NotReplayableError: The reason is none of the decoder's.
        NothingLandedYetError: A table has no ledger yet.
        RedoUnfinishedError: A redo is done in part.
        LakeboundError: What reading a ledger raises.
    """
    check_stateless(spec, "release from quarantine")
    if others := [one.id for one in spec.other_targets]:
        raise NotReleasableError(spec.pipeline, others)
    if reason is not None and reason not in DECODER_REASONS:
        raise NotReplayableError(spec.pipeline, reason)
    reasons = DECODER_REASONS if reason is None else (reason,)
    plan = ReleasePlan(pipeline=spec.pipeline, reasons=reasons)
    if not open_table(spec.quarantine_table, places).exists():
        return plan
    quarantined = offsets_in(read_index(spec.quarantine_table, places, reasons, copies=False))
    if not quarantined:
        return plan
    shares = []
    for one in spec.tables:
        table, view = owned_table(spec, one, places)
        check_no_redo_unfinished(spec.pipeline, one.id, view.entry)
        found = look_at(table, quarantined)
        lacking, landed, uncovered = (size(arrays) for arrays in (found.lacking, found.landed, found.uncovered))
        shares.append(ReleaseShare(table=one.id, lacking=lacking, landed=landed, uncovered=uncovered))
    return plan.model_copy(update={"tables": tuple(shares)})
