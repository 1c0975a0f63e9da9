"""One maintenance run: a plan's steps, one after another, beside a stream that always goes first.

Nothing is kept between runs but the tables and the reports: a run that is killed anywhere is followed by another one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from lakebound.control.desired import read_desired
from lakebound.control.folder import ControlFolder, locked_if_free
from lakebound.errors import LakeboundError
from lakebound.operations.maintenance.engines import Engine, StepLostError, TableGoneError, carry_out
from lakebound.operations.maintenance.steps import MaintenancePlan, MaintenanceStep, RunReport, StepEffect, StepReport
from lakebound.redaction import redacted
from lakebound.spec.table import TableSpec

_ATTEMPTS = 4
_LONGEST_WAIT_SECONDS = 30.0
# Not structlog: where nothing configures it, its traceback shows the values of all local variables, addresses among them.
_log = logging.getLogger(__name__)


class MaintenanceRunsError(LakeboundError):
    """Another maintenance run of the pipeline is under way."""

    def __init__(self, pipeline: str) -> None:
        super().__init__(
            f"pipeline {pipeline!r} is being maintained by another run, which does the same work; this run did nothing"
        )


@contextmanager
def only_run(control: ControlFolder) -> Iterator[None]:
    """Be the pipeline's only maintenance run on this machine inside the block; the lock of a killed run is free by itself.

    Raises:
        MaintenanceRunsError: Another one is under way.
    """
    with locked_if_free(control.maintenance) as is_mine:
        if not is_mine:
            raise MaintenanceRunsError(control.pipeline)
        yield


def run_steps(
    plan: MaintenancePlan,
    engine: Engine,
    tables: Mapping[str, TableSpec],
    control: ControlFolder,
    *,
    run_id: str,
    is_stopping: Callable[[], bool] = lambda: False,
    tell: Callable[[StepReport], None] = lambda report: None,
    wait: Callable[[float], None] = time.sleep,
) -> RunReport:
    """Carry out the plan's steps in their order, and return what became of each.

    A step that lost to somebody faster is tried again with growing waits, and then left for the next run. One that fails does
    not stop the others; those of a table that is gone are skipped. No step runs beside a repair or a rewind.

    Args:
        plan: What is done.
        engine: Who does it.
        tables: Table id to table.
        control: The pipeline's folder.
        run_id: Names the run.
        is_stopping: Whether to end before the next step.
        tell: Called with each step's report.
        wait: Waits the given seconds.
    """
    started_at_ms, reports = _now_ms(), list[StepReport]()
    gone: set[str] = set()
    for step in plan.steps:
        why = _why_skipped(step, gone, control, is_stopping)
        report = (
            StepReport(step=step, outcome="skipped", problem=why) if why else _run(step, engine, tables, control, wait, gone)
        )
        reports.append(report)
        tell(report)
    return RunReport(
        pipeline=plan.pipeline,
        run_id=run_id,
        started_at_ms=started_at_ms,
        ended_at_ms=_now_ms(),
        steps=tuple(reports),
        warnings=plan.warnings,
    )


def _why_skipped(step: MaintenanceStep, gone: set[str], control: ControlFolder, is_stopping: Callable[[], bool]) -> str:
    if is_stopping():
        return "the run was asked to end"
    if step.table in gone:
        return f"table {step.table} is gone"
    desired = read_desired(control)
    if desired.state == "held":
        return f"the pipeline is held ({desired.reason}): a person looks at it, so its tables stay as they are"
    return ""


def _run(
    step: MaintenanceStep,
    engine: Engine,
    tables: Mapping[str, TableSpec],
    control: ControlFolder,
    wait: Callable[[float], None],
    gone: set[str],
) -> StepReport:
    started = time.monotonic()
    refused = [0]

    def count(state: RetryCallState) -> None:
        lost = state.outcome.exception() if state.outcome else None
        refused[0] += lost.conflicts if isinstance(lost, StepLostError) else 0

    retrying = Retrying(
        retry=retry_if_exception_type(StepLostError),
        stop=stop_after_attempt(_ATTEMPTS),
        wait=wait_random_exponential(multiplier=1, max=_LONGEST_WAIT_SECONDS),
        sleep=wait,
        after=count,
        reraise=True,
    )
    try:
        done: StepEffect = retrying(_attempt, step, engine, tables, control)
    except StepLostError as exc:
        return _report(step, "lost", started, problem=str(exc), conflicts=refused[0])
    except TableGoneError as exc:
        gone.add(step.table)
        return _report(step, "failed", started, problem=str(exc))
    except LakeboundError as exc:
        return _report(step, "failed", started, problem=str(exc), conflicts=refused[0])
    except Exception as exc:
        _log.exception("%s: %s failed", step.table, step.kind)
        return _report(step, "failed", started, problem=redacted(exc))
    found = done.model_dump(exclude={"conflicts"})
    outcome = "failed" if done.problem else "nothing" if done.is_nothing else "done"
    return _report(step, outcome, started, conflicts=done.conflicts + refused[0], **found)


def _attempt(step: MaintenanceStep, engine: Engine, tables: Mapping[str, TableSpec], control: ControlFolder) -> StepEffect:
    with locked_if_free(control.repair) as is_free:
        if not is_free:
            raise StepLostError(step.table, "a repair or a rewind of the pipeline is under way", conflicts=0)
        return carry_out(engine, tables[step.table], step)


def _report(step: MaintenanceStep, outcome: str, started: float, **fields: object) -> StepReport:
    body = {"step": step, "outcome": outcome, "seconds": round(time.monotonic() - started, 3), **fields}
    return StepReport.model_validate(body)


def _now_ms() -> int:
    return int(time.time() * 1000)
