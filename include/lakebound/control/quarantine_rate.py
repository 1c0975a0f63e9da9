"""Whether too many of a pipeline's records go to quarantine: the share, the words for it, and what follows. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from lakebound.control.desired import Desired
from lakebound.control.progress import Outcome, Progress, RecentRecords
from lakebound.errors import QuarantineFloodError, error_named
from lakebound.spec.objectives import ObjectivesSpec, QuarantineRateSpec
from lakebound.spec.pipeline import PipelineSpec

_MOST_NAMED = 3


@dataclass(frozen=True)
class Flood:
    """More records go to quarantine than the objective allows.

    Attributes:
        recent: The application's recent records.
        allowed: The share that the objective allows.
        has_stopped: Whether the application ended for it, and the pipeline is still held.
    """

    recent: RecentRecords
    allowed: float
    has_stopped: bool = False

    def __str__(self) -> str:
        held = (
            "; the application ended because of this, and the pipeline is held until a person starts it"
            if self.has_stopped
            else ""
        )
        return f"{told_share(self.recent)}; the limit is {_percent(self.allowed)}{held}"


def window_seconds(objectives: ObjectivesSpec) -> float:
    """Return over how long an application counts, also where the objective is switched off: ``status`` shows the share."""
    return (objectives.quarantine_rate or QuarantineRateSpec()).over_seconds


def recent_records(progress: Progress | None, now: float) -> RecentRecords | None:
    """Return the recent records; None where they are too old.

    What an application that ended had counted stands until the next one counts: a pipeline that runs on a schedule rests
    longer between two runs than it counts.
    """
    if progress is None or progress.recent is None:
        return None
    recent = progress.recent
    is_current = progress.state == "ended" or now - recent.newest_at <= recent.over_seconds
    return recent if is_current else None


def flood_of(
    objectives: ObjectivesSpec, desired: Desired, progress: Progress | None, outcome: Outcome | None, now: float
) -> Flood | None:
    """Return the flood of bad records; None without one, or where somebody stopped the pipeline.

    Args:
        objectives: The pipeline's.
        desired: The desired state.
        progress: The latest.
        outcome: How the application of ``progress`` ended; another one's does not count.
        now: Epoch seconds.
    """
    spec, recent = objectives.quarantine_rate, recent_records(progress, now)
    if spec is None or progress is None or recent is None:
        return None
    if not desired.wants_app:
        return Flood(recent, spec.max_share, has_stopped=True) if _stopped_itself(desired, progress, outcome) else None
    return Flood(recent, spec.max_share) if _is_enough(spec, recent) and recent.share > spec.max_share else None


def stop_error(spec: PipelineSpec, recent: RecentRecords | None) -> QuarantineFloodError | None:
    """Return what an application refuses to go on for; None where it goes on."""
    rate = spec.objectives.quarantine_rate
    if rate is None or rate.stop_at is None or recent is None:
        return None
    if not _is_enough(rate, recent) or recent.share < rate.stop_at:
        return None
    return QuarantineFloodError(spec.pipeline, told_share(recent), rate.stop_at)


def told_share(recent: RecentRecords) -> str:
    """Return the share and the commonest reasons in words."""
    reasons = ", ".join(f"{reason} ({count})" for reason, count in list(recent.reasons.items())[:_MOST_NAMED])
    return (
        f"{_percent(recent.share)} of the records of the application's last {recent.over_seconds:g} s went to quarantine "
        f"({recent.quarantined} of {recent.records})" + (f", most often {reasons}" if reasons else "")
    )


def _percent(share: float) -> str:
    """A share that is not zero never reads as zero."""
    return f"{share:.1%}" if share == 0 or share >= 0.001 else "less than 0.1%"


def _is_enough(spec: QuarantineRateSpec, recent: RecentRecords) -> bool:
    return recent.quarantined >= spec.min_quarantined


def _stopped_itself(desired: Desired, progress: Progress, outcome: Outcome | None) -> bool:
    if outcome is None or not outcome.app_id == progress.app_id == desired.by:
        return False
    return issubclass(error_named(outcome.error_class), QuarantineFloodError)
