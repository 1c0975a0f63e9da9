"""Collects the facts of a pipeline: tables, state folder, Kafka. Each source may fail on its own; nothing is written.

The order matters while an application runs: the tables before the lease (an application takes the lease before it writes an
entry, so a later epoch in a table than in the lease is no accident of reading), the tables before Kafka's ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from lakebound.control.applications import living_submission
from lakebound.control.crash_loop import count_last_end, read_crash_loop
from lakebound.control.desired import read_desired
from lakebound.control.folder import ControlFolder, StateFile, locked_if_free, modified_at
from lakebound.control.last_end import read_last_end
from lakebound.control.lease import lease_is_live, read_lease
from lakebound.control.progress import read_outcome, read_progress
from lakebound.control.submission import process_is_alive, read_submission
from lakebound.errors import LakeboundError
from lakebound.first_line import first_line
from lakebound.inspection.doctor.pipeline.facts import KafkaLook, LedgerFacts, PipelineFacts, ScratchFacts
from lakebound.inspection.doctor.pipeline.kafka_look import look_at_kafka, look_at_waiting
from lakebound.inspection.doctor.pipeline.ledger_facts import read_ledgers
from lakebound.inspection.doctor.pipeline.warning_rules import REDO_QUIET_SECONDS
from lakebound.landing.checkpoint.offset_log import read_offset_log
from lakebound.landing.target_kind import target_kinds
from lakebound.ledger.entry import redo_in
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.places import places_of

T = TypeVar("T")


def read_pipeline_facts(spec: PipelineSpec, settings: Settings) -> PipelineFacts:
    """Return everything that the rules look at; raises nothing for what cannot be read."""
    ledgers = read_ledgers(spec, places_of(settings, spec.warehouse))
    state = read_state(spec, ControlFolder(settings.home, spec.pipeline), ledgers, time.time())
    facts = replace(state, kafka=look_at_kafka(spec))
    asked = [kind for kind in target_kinds() if kind.specs(spec)]
    if facts.kafka.problem is not None:
        asked = [kind for kind in asked if not kind.is_on_source_broker]
    facts = replace(facts, targets_seen={kind.key: kind.look(spec) for kind in asked})
    return replace(facts, kafka=look_at_waiting(spec, facts.kafka, facts.lowest_marks(), facts.now))


def read_state(spec: PipelineSpec, control: ControlFolder, ledgers: Sequence[LedgerFacts], now: float) -> PipelineFacts:
    """Return the facts of the tables and of the state folder; Kafka's are not among them."""
    files = _Files()
    written_at = _modified_at(control.lease)
    lease = files.read("lease", control.lease, lambda: read_lease(control))
    if _modified_at(control.lease) != written_at:
        written_at = None  # renewed meanwhile: the time may be that of another sign of life than the one that was read
    desired = files.read("desired state", control.desired, lambda: read_desired(control))
    submission = files.read("submission", control.submission, lambda: read_submission(control))
    living = files.read("submission", control.submission, lambda: living_submission(control))
    newest = submission.app_id if submission is not None else lease.app_id if lease is not None else ""
    last_end = None if living is not None else read_last_end(control)
    if last_end is not None:
        last_end = replace(last_end, landed_epoch=max((table.landed_epoch for table in ledgers), default=0))
    outcome = files.read("outcome", control.outcome(newest), lambda: read_outcome(control, newest)) if newest else None
    return PipelineFacts(
        spec=spec,
        now=now,
        tables=tuple(ledgers),
        kafka=KafkaLook(),
        desired=desired,
        lease=lease,
        lease_live=lease is not None and lease_is_live(control, lease, now),
        lease_written_at=written_at,
        submission=submission,
        submission_alive=process_is_alive(submission) if submission is not None else None,
        living=living.app_id if living is not None else None,
        progress=files.read("progress", control.progress, lambda: read_progress(control)),
        outcome=outcome,
        last_end=last_end,
        crash_loop=count_last_end(read_crash_loop(control), last_end, desired.since if desired else 0.0),
        scratch=read_scratch(control, living.app_id if living is not None else lease.app_id if lease is not None else ""),
        unreadable=files.unreadable,
        repairing=_is_redo_quiet(ledgers, now) and _is_repairing(control),
    )


def _is_redo_quiet(ledgers: Sequence[LedgerFacts], now: float) -> bool:
    """Return whether a redo is not finished in a table and has said nothing there for a while; only then the lock is tried."""
    progress = [redo_in(one.entry) for one in ledgers if one.entry is not None]
    return any(one.left and now - one.at_ms / 1000 >= REDO_QUIET_SECONDS for one in progress)


def _is_repairing(control: ControlFolder) -> bool:
    """Return whether a redo, an undoing or another repair is under way, as far as this machine sees its lock."""
    if _modified_at(control.repair.with_name(f"{control.repair.name}.lock")) is None:
        return False  # there is no lock yet, and none is made here
    try:
        with locked_if_free(control.repair) as is_free:
            return not is_free
    except (OSError, LakeboundError):
        return False


def read_scratch(control: ControlFolder, app_id: str) -> ScratchFacts:
    """Return what lies in the scratch checkpoint folders; files may vanish while they are counted.

    They are on the machine that runs the application, which may be another one where the state is in a bucket.
    """
    root = control.folder / "checkpoints"
    own = control.checkpoint(app_id) if app_id else root / "-"
    sizes = [_size(path) for path in root.rglob("*")] if root.is_dir() else []
    if not own.is_dir():
        return ScratchFacts(exists=None if control.is_shared else False, bytes=sum(sizes))
    return ScratchFacts(exists=True, bytes=sum(sizes), torn=tuple(_torn(own)))


def _torn(folder: Path) -> list[str]:
    """Return the newest offset log of each query that cannot be read, and empty commit logs."""
    torn: list[str] = []
    for query in sorted(folder.iterdir()):
        for name in ("offsets", "commits"):
            numbers = [path for path in query.glob(f"{name}/*") if path.name.isdigit()]
            newest = max(numbers, key=lambda path: int(path.name), default=None)
            if newest is not None and _is_torn(query, newest):
                torn.append(str(newest))
    return torn


def _is_torn(query: Path, path: Path) -> bool:
    try:
        if path.parent.name == "offsets":
            read_offset_log(query, int(path.name))
            return False
        return not path.read_text().startswith("v")
    except FileNotFoundError:
        return False
    except (LakeboundError, OSError, ValueError):
        return True


def _modified_at(path: StateFile) -> float | None:
    try:
        return modified_at(path)
    except OSError:
        return None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0


@dataclass
class _Files:
    """Reads files; one that cannot be read is noted."""

    unreadable: dict[str, str] = field(default_factory=dict)

    def read(self, name: str, path: StateFile, reading: Callable[[], T]) -> T | None:
        try:
            return reading()
        except (OSError, ValueError, TypeError, AttributeError) as exc:
            self.unreadable.setdefault(name, f"{path} cannot be read: {first_line(exc)}")
            return None
