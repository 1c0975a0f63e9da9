"""How an application ended, what its end means for the next start, and writing that down."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Event

from lakebound.control.desired import change_desired, read_desired
from lakebound.control.folder import ControlFolder
from lakebound.control.progress import EndVerdict, Outcome
from lakebound.errors import LakeboundError, LeaseLostError, QuarantineFloodError
from lakebound.landing.run_spec import RunSpec
from lakebound.redaction import redacted
from lakebound.tables.outages import is_outage, passes

log = logging.getLogger(__name__)

WRITE_DOWN_SECONDS = 300.0
"""For how long the end of an application is tried to be written down while its state does not take it."""
_AGAIN_SECONDS = 2.0


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


def change_desired_at_end(run: RunSpec, outcome: Outcome, error: BaseException | None) -> None:
    """Let the pipeline rest where the next start must not follow by itself: a bounded run is over, or a flood is held off.

    Args:
        run: The application's orders.
        outcome: How it ended.
        error: What ended it; None: nothing did.
    """
    if outcome.verdict == "completed" and run.until is not None:
        _finish_bounded_run(run)
    if isinstance(error, QuarantineFloodError):
        _hold(run, error)


def write_down(write: Callable[[], None], control: ControlFolder, signalled: Event) -> None:
    """Write something of the end of an application, again while its state is away: what has no outcome is told as a kill.

    The stream has ended and holds nothing any more, so nobody waits for this.

    Args:
        write: Writes it.
        control: The pipeline's state.
        signalled: Is set when a signal asks the process to end: then it is not tried again.

    Raises:
        Exception: What the last attempt met.
    """
    ends, is_said = time.monotonic() + WRITE_DOWN_SECONDS, False
    while True:
        try:
            return write()
        except Exception as exc:
            if not _may_come_right(control, exc) or time.monotonic() > ends:
                raise
            if not is_said:
                log.warning("the end cannot be recorded yet; this is tried for %.0f s: %s", WRITE_DOWN_SECONDS, exc)
                is_said = True
            if signalled.wait(_AGAIN_SECONDS):
                raise


def _may_come_right(control: ControlFolder, error: Exception) -> bool:
    """Whether another attempt may succeed. Keys of a store may be renewed at this moment, so its refusals count, too."""
    return passes(error) or (control.is_shared and isinstance(error, LakeboundError | OSError))


def _finish_bounded_run(run: RunSpec) -> None:
    """Note that a bounded run reached its end: the next DAG run must not start it again."""
    if read_desired(run.control).generation == run.generation:
        change_desired(run.control, "stopped", reason="the bounded run reached its end", by=run.app_id)


def _hold(run: RunSpec, error: QuarantineFloodError) -> None:
    """Hold the pipeline, because the next start would go on with the flood; what a person has asked for meanwhile stands."""
    desired = read_desired(run.control)
    if desired.wants_app and desired.generation == run.generation:
        freshness, until = desired.freshness, desired.until
        change_desired(run.control, "held", freshness=freshness, until=until, reason=str(error), by=run.app_id)
