"""Taking offsets back needs exclusive access to the pipeline: held, stopped, and with its lease."""

from __future__ import annotations

from lakebound.control.applications import living_submission
from lakebound.control.folder import ControlFolder
from lakebound.control.incidents import Decision, record_incident
from lakebound.errors import LakeboundError
from lakebound.ledger.entry import count
from lakebound.operations.recovery.takeover import taken_over
from lakebound.operations.replay.plan import ReplayPlan, describe
from lakebound.operations.replay.take_back import take_back
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.places import places_of


class StreamRunsError(LakeboundError):
    """Offsets are to be taken back while the pipeline's application runs."""

    def __init__(self, pipeline: str, app_id: str, offsets: int) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: {offsets} offsets are in the coverage but have no rows. They must be removed from the "
            f"coverage before they can land again, and the pipeline must be stopped for this, but {app_id} runs. Nothing was "
            f"written. Stop the pipeline, run this again, then start the pipeline"
        )


def take_back_alone(spec: PipelineSpec, settings: Settings, plan: ReplayPlan, *, by: str) -> dict[str, int]:
    """Take back what the plan says, and return how many offsets per table id.

    Args:
        spec: Pipeline whose tables lack rows.
        settings: This machine's settings; they say where tables and state folders are.
        plan: Plan of the replay that is to land these offsets again.
        by: Who asks; the record of the incident has it also as the approver.

    Raises:
        StreamRunsError: The pipeline's application lives.
        LakeboundError: What taking the lease and writing the tables raises; the pipeline then stays held.
    """
    control = ControlFolder(settings.home, spec.pipeline)
    lacking = plan.takes_back
    living = living_submission(control)
    if living is not None:
        raise StreamRunsError(spec.pipeline, living.app_id, sum(count(offsets) for offsets in lacking.values()))
    reason = "offsets without rows are taken out of the coverage, to be landed again"
    with taken_over(spec, places_of(settings, spec.warehouse), by=by, reason=reason) as lease:
        taken = take_back(spec, places_of(settings, spec.warehouse), lacking, epoch=lease.epoch)
    record_incident(
        control,
        "repair",
        f"rows were missing: {sum(count(offsets) for offsets in taken.values())} offsets were taken back, to be landed again",
        runbook="proof-failed",
        facts={table: describe(offsets) for table, offsets in taken.items()},
        outcome="taken back; a replay lands them",
        decision=Decision(asked_by=by, approved_by=by),
    )
    return {table: count(offsets) for table, offsets in taken.items()}
