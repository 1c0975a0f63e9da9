"""Every phase of a batch, in each lane and with each format, broken in every way: the doctor against what a start would land.

The judge is the start itself: the application's own opening, starting offsets and trimming, on tables in memory, compared with
what was produced. No case that a start would lose or double, or refuse, may be called well or repairable; and no case that it
lands exactly may wake anybody.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.support.streams.long_form import LONG_FORM, short_form
from tests.support.worlds.pipeline_fault import Fault
from tests.support.worlds.pipeline_faults import faults_of
from tests.support.worlds.pipeline_starts import Start, start
from tests.support.worlds.pipeline_worlds import BETWEEN_TABLES, FORMATS, LANES, PHASES, World, make_world

from lakebound.control.runbooks import RUNBOOKS
from lakebound.inspection.doctor.diagnosis import Diagnosis
from lakebound.inspection.doctor.pipeline import ledger_facts
from lakebound.inspection.doctor.pipeline.collect import read_state
from lakebound.inspection.doctor.pipeline.facts import PipelineFacts
from lakebound.inspection.doctor.pipeline.rules import RULES, PipelineRule, diagnose
from lakebound.tables.delta.contents import Contents
from lakebound_spark.stream import opening

pytestmark = pytest.mark.enumeration

ASKING = ("needs_approval", "needs_person")
CELLS = [
    (formats, lane, phase)
    for formats in FORMATS
    for lane in LANES
    for phase in PHASES
    if len(formats) > 1 or phase not in BETWEEN_TABLES
]
FEWEST_CASES = 2000
TRIED = short_form(CELLS, lambda cell: [(cell[0], cell[1]), cell[2]])
SHARE = 1 if LONG_FORM else 4
"""In the short form each phase, and each lane with each format, with a quarter of the faults."""


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder in memory where there is one: thousands of small files are written."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(prefix="lakebound-", dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture(autouse=True, scope="module")
def no_waiting_for_the_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


def cases(cell: tuple[tuple[str, ...], str, str], tmp_path: Path, share: int = 1) -> Iterator[tuple[World, Fault]]:
    """Yield broken worlds of a cell, their files written: of so many of its faults one, in each cell others."""
    blank = make_world(*cell, tmp_path)
    for number, fault in enumerate(faults_of(blank)):
        if (number + CELLS.index(cell)) % share:
            continue
        world = blank.copy(tmp_path / str(number))
        fault.breaks(world)
        world.write()
        yield world, fault


def look(world: World, monkeypatch: pytest.MonkeyPatch) -> PipelineFacts:
    """Return what the doctor sees of a world."""
    monkeypatch.setattr(ledger_facts, "open_table", world.lake.open)
    monkeypatch.setattr(Contents, "remembered_epoch", lambda one: world.lake.remembered_epoch(one.spec, one.places))
    monkeypatch.setattr(opening, "open_table", world.lake.open)
    ledgers = ledger_facts.read_ledgers(world.spec, world.places)
    state = read_state(world.spec, world.control, ledgers, world.now)
    return replace(state, kafka=world.kafka, **world.alterations)


def wrong(world: World, fault: Fault, said: Diagnosis, did: Start | None) -> list[str]:
    """Return what is wrong with a diagnosis, given what a start did (None: an application lives, none was tried)."""
    found = {finding.rule for finding in said.findings}
    case = f"{'+'.join(world.formats)}, {world.lane} lane, {world.phase}; {fault.name}: {said.verdict} {sorted(found)}"
    problems = [f"{case}: {rule} was not found" for rule in fault.expects - found]
    if {"application-dead", "start-refused"} <= found:
        problems.append(f"{case}: the refusal says already why no application lives")
    problems += [f"{case}: no page {f.runbook}" for f in said.findings if f.runbook and f.runbook not in RUNBOOKS]
    asks = said.verdict in ASKING
    if did is None:
        if asks != bool(fault.expects & {"two-drivers", "two-state-folders"}):
            problems.append(f"{case}: and the application lives")
    elif did.waits:
        if said.verdict != "starting":
            problems.append(f"{case}: a start waits")
    elif not did.is_exact and not asks:
        problems.append(f"{case}: a start loses {did.missing}, doubles {did.doubled}, refuses {did.refusal!r}")
    elif did.is_exact and asks and not fault.cautious:
        problems.append(f"{case}: a start lands everything once; it was woken for nothing")
    if not asks and said.loses_records:
        problems.append(f"{case}: it loses {said.loses_records} and nobody is asked")
    return problems


@pytest.mark.parametrize("cell", TRIED, ids=lambda cell: "-".join((*cell[0], cell[1], cell[2].replace(" ", "_"))))
def test_the_doctor_says_what_a_start_would_do(
    cell: tuple[tuple[str, ...], str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = []
    for world, fault in cases(cell, tmp_path, SHARE):
        facts = look(world, monkeypatch)
        problems += wrong(world, fault, diagnose(facts), None if fault.lives else start(world))
    assert not problems, f"{len(problems)}:\n" + "\n".join(problems[:20])


def test_no_cell_of_fault_phase_lane_and_format_is_empty(tmp_path: Path) -> None:
    names: dict[tuple[str, str], set[str]] = {}
    count = 0
    for formats, lane, phase in CELLS:
        faults = faults_of(make_world(formats, lane, phase, tmp_path))
        count += len(faults)
        names.setdefault((phase, "+".join(formats)), set()).update(fault.name for fault in faults)
        assert [name for name, times in Counter(fault.name for fault in faults).items() if times > 1] == []
    assert count >= FEWEST_CASES
    for formats in FORMATS:
        # A fault is left out of a phase only where there is nothing to break: no outcome before the end, no scratch after it.
        everywhere = set.intersection(*(found for (_, name), found in names.items() if name == "+".join(formats)))
        assert len(everywhere) > 60


@dataclass(frozen=True)
class Seen:
    """A case, what the doctor saw and what a start did."""

    world: World
    fault: Fault
    facts: PipelineFacts
    did: Start | None


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> list[Seen]:
    """Every fault of two phases: one in which something was landed, and one in which nothing was."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        for phase in ("second table committed", "all tables opened"):
            for world, fault in cases((("delta", "iceberg"), "cluster", phase), tmp_path_factory.mktemp("cases")):
                facts = look(world, patch)
                found.append(Seen(world, fault, facts, None if fault.lives else start(world)))
    return found


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_without_any_one_rule_a_case_fails(rule: PipelineRule, seen: list[Seen]) -> None:
    rules = [other for other in RULES if other is not rule]
    assert any(wrong(case.world, case.fault, diagnose(case.facts, rules), case.did) for case in seen)
