"""``lakebound status`` says of which tables others changed rows, by what the application or the doctor saw last."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from tests.support.streams.stand_ins import ORDERS

from lakebound.alerts.doctor_findings import SOURCE, doctor_findings
from lakebound.control.findings import Findings
from lakebound.control.progress import Progress, TableProgress
from lakebound.control.status import DOCTOR, StatusFacts, status_of
from lakebound.control.submission import Submission
from lakebound.inspection.doctor.pipeline.facts import LedgerFacts, PipelineFacts
from lakebound.inspection.doctor.pipeline.rules import diagnose
from lakebound.ledger.entry import Entry
from lakebound.ledger.foreign_changes import ForeignChange
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.table import LedgerView
from lakebound_spark.batch.targets import Target
from lakebound_spark.stream.reporting import TargetsReport

NOW = 1_700_000_000.0
SPEC = PipelineSpec.model_validate(ORDERS)
TABLE = SPEC.tables[0].id
APP = Submission(app_id="orders-g0-1", submitted_at=NOW - 100)
CHANGES = (ForeignChange(version="7", operation="DELETE", removed=3), ForeignChange(version="9", operation="MERGE", added=2))


def progress(changes: int, committed_at: float = NOW - 2) -> Progress:
    newest = str(CHANGES[changes - 1]) if changes else None
    table = TableProgress(version="9", committed_at=committed_at, changed_by_others=changes, newest_change=newest)
    body = {"pipeline": "orders", "app_id": APP.app_id, "state": "running", "started_at": NOW - 90, "updated_at": NOW - 1}
    return Progress.model_validate({**body, "tables": {TABLE: table}})


def looked(*changes: ForeignChange, at: float) -> Findings:
    """What the doctor writes down of such a table."""
    table = LedgerFacts(TABLE, "target", "entry", foreign_changes=changes)
    found = doctor_findings(diagnose(PipelineFacts(spec=SPEC, now=at, tables=(table,), living=APP.app_id)), at)
    return Findings(source=SOURCE, pipeline="orders", at=at, findings=found)


def notes(progress: Progress | None, doctor: Findings | None = None) -> list[str]:
    living = APP if progress is not None else None
    facts = StatusFacts("orders", SPEC, living=living, last=APP, progress=progress, doctor=doctor)
    found = status_of(facts, NOW)
    told = [note for note in found.notes if "others changed rows" in note]
    assert bool(told) == (found.rows_changed_by_others == (TABLE,))
    return told


def test_the_source_is_the_doctors() -> None:
    assert DOCTOR == SOURCE


def test_what_the_application_saw_is_told_with_the_ways_on() -> None:
    assert notes(progress(0)) == []
    (one,) = notes(progress(1))
    assert "(1 commit: version 7 (DELETE" in one
    (two,) = notes(progress(2))
    assert "(2 commits, the newest: version 9 (MERGE" in two
    for command in ("lakebound prove orders --deep", "lakebound erase orders", f"lakebound acknowledge orders {TABLE}"):
        assert command in two


def test_what_the_doctor_saw_is_told_where_no_application_has_committed_since() -> None:
    (told,) = notes(None, looked(*CHANGES, at=NOW - 60))
    assert "found by the doctor at 2023-11-14 22:12:20 UTC" in told
    (told,) = notes(progress(0, committed_at=NOW - 300), looked(*CHANGES, at=NOW - 60))
    assert "found by the doctor" in told


def test_the_later_of_the_two_counts() -> None:
    assert notes(progress(2, committed_at=NOW - 300), looked(at=NOW - 60)) == [], (
        "it was acknowledged, and nothing has landed since"
    )
    assert notes(progress(0), looked(*CHANGES, at=NOW - 60)) == [], "the newest entry does not remember it any more"
    (told,) = notes(progress(1), looked(at=NOW - 60))
    assert "version 7" in told


def test_the_application_reports_what_the_newest_entry_remembers() -> None:
    shown: dict[str, Any] = {}
    board = SimpleNamespace(change=lambda **fields: shown.update(fields))
    entry = Entry(kind="land", pipeline="orders", epoch=1, commit="c", foreign_changes=CHANGES)
    table = cast(Any, SimpleNamespace(spec=SPEC.tables[0]))
    target = Target(table, LedgerView(entry, "10"), last_commit_at=NOW)
    report = TargetsReport(cast(Any, board), {"main": [target]})
    report.put("main", [target])
    assert (shown["tables"][TABLE].changed_by_others, shown["tables"][TABLE].newest_change) == (2, str(CHANGES[1]))
    report.put("main", [replace(target, view=LedgerView(entry.model_copy(update={"foreign_changes": ()}), "11"))])
    assert (shown["tables"][TABLE].changed_by_others, shown["tables"][TABLE].newest_change) == (0, None)
