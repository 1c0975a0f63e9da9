"""How an application ended, and what its end means for the next start."""

from __future__ import annotations

from lakebound.control.desired import change_desired, read_desired
from lakebound.control.progress import EndVerdict
from lakebound.errors import LakeboundError, LeaseLostError, QuarantineFloodError
from lakebound.landing.run_spec import RunSpec
from lakebound.redaction import redacted
from lakebound.tables.outages import is_outage


def verdict_on(error: BaseException) -> tuple[EndVerdict, str]:
    """Return the verdict and the reason of an application that an error ended."""
    if isinstance(error, LeaseLostError):
        return "superseded", str(error)
    if is_refusal(error):
        return "refused", str(error)
    return "failed", redacted(error)


def is_refusal(error: BaseException) -> bool:
    """Whether the next start would meet the same, so that a person decides."""
    return isinstance(error, LakeboundError) and error.is_refusal and not is_outage(error)


def finish_bounded_run(run: RunSpec) -> None:
    """Note that a bounded run reached its end: the next DAG run must not start it again."""
    if read_desired(run.control).generation == run.generation:
        change_desired(run.control, "stopped", reason="the bounded run reached its end", by=run.app_id)


def hold(run: RunSpec, error: QuarantineFloodError) -> None:
    """Hold the pipeline, because the next start would go on with the flood; what a person has wished meanwhile stands."""
    desired = read_desired(run.control)
    if desired.wants_app and desired.generation == run.generation:
        freshness, until = desired.freshness, desired.until
        change_desired(run.control, "held", freshness=freshness, until=until, reason=str(error), by=run.app_id)
