"""A redo that has ended early is a warning, and one that is at work is none."""

from __future__ import annotations

from dataclasses import replace

from tests.support.worlds.proof_world import PIPELINE

from lakebound.inspection.doctor.pipeline.facts import LedgerFacts, PipelineFacts
from lakebound.inspection.doctor.pipeline.warning_rules import REDO_QUIET_SECONDS, redo_unfinished
from lakebound.ledger.entry import Entry
from lakebound.ledger.redo_progress import RedoProgress
from lakebound.spec.pipeline import PipelineSpec

NOW = 1_800_000_000.0
QUIET_MS, BUSY_MS = round((NOW - REDO_QUIET_SECONDS) * 1000), round((NOW - 60) * 1000)


def facts(*progress: RedoProgress) -> PipelineFacts:
    """Return those of a pipeline whose tables say this."""
    names = [f"lake.t{number}" for number in range(len(progress))]
    body = {
        "pipeline": PIPELINE,
        "topics": ["orders"],
        "connection": {"bootstrap_servers": "127.0.0.1:1"},
        "value": {"format": "bytes"},
        "freshness": "1s",
        "tables": [{"format": "delta", "name": name} for name in names],
    }
    entries = [Entry(kind="land", pipeline=PIPELINE, epoch=1, commit="c", redo_progress=one) for one in progress]
    tables = [LedgerFacts(f"delta:{name}", "target", "entry", entry=entry) for name, entry in zip(names, entries, strict=True)]
    return PipelineFacts(spec=PipelineSpec.model_validate(body), now=NOW, tables=tuple(tables))


def said(found: PipelineFacts) -> list[str]:
    return [finding.evidence["table"] for finding in redo_unfinished(found)]


def test_a_table_in_which_nothing_was_done_for_a_while_is_named() -> None:
    quiet = RedoProgress(plan="p", left=5, at_ms=QUIET_MS)
    assert said(facts(quiet, RedoProgress(plan="p"))) == ["delta:lake.t0"]
    assert said(facts(RedoProgress(plan="p", left=5, at_ms=BUSY_MS))) == []
    assert said(facts(RedoProgress(plan="p"), RedoProgress())) == []


def test_another_table_of_the_same_plan_shows_that_it_is_at_work() -> None:
    quiet = RedoProgress(plan="p", left=5, at_ms=QUIET_MS)
    assert said(facts(RedoProgress(plan="p", left=3, at_ms=BUSY_MS), quiet)) == []
    assert said(facts(RedoProgress(plan="other", left=3, at_ms=BUSY_MS), quiet)) == ["delta:lake.t1"]


def test_one_that_holds_the_lock_of_repairs_is_at_work() -> None:
    found = facts(RedoProgress(plan="p", left=5, at_ms=QUIET_MS))
    assert said(found) and not said(replace(found, repairing=True))
