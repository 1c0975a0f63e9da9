"""Every crash prefix of recorded native streams, and every corruption of every file in it, against an oracle of the restart.

The recording is of a real Spark (tests/recordings/record.py). The oracle (tests/support/worlds/spark_restart.py) says what a
plain restart does to the records; the doctor may call nothing healthy or repairable that would lose or double one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import pytest
from tests.support.streams.long_form import LONG_FORM
from tests.support.tables.changed_tables import changed_tables
from tests.support.worlds.corruptions import Corruption, of_files, of_folders
from tests.support.worlds.recorded_streams import FORMATS, Moment, Recording, recording
from tests.support.worlds.spark_restart import NativeTable, restart

from lakebound.inspection.doctor.diagnosis import Diagnosis
from lakebound.inspection.doctor.foreign import checkpoint_facts
from lakebound.inspection.doctor.foreign.checkpoint_facts import parse_checkpoint
from lakebound.inspection.doctor.foreign.diagnosis import diagnose
from lakebound.inspection.doctor.foreign.facts import ForeignFacts, TopicSeen
from lakebound.inspection.doctor.foreign.mending import Mending, mend
from lakebound.inspection.doctor.foreign.table_facts import ForeignHistory

pytestmark = pytest.mark.enumeration

PHASES = ("k0", "k1", "k2", "k4", "k4 within commit", "k5")
FAULTS = ("missing", "empty", "cut", "flip", "more bytes", "stale copy", "from another query", "checksum", "deleted", "stray")
CORRUPTED_BATCHES = (0, 1, 6) if LONG_FORM else (0, 6)
FEWEST_CASES = 1_200 if LONG_FORM else 600


@dataclass(frozen=True)
class Judged:
    """One case: what the doctor says, and what a restart really does."""

    name: str
    diagnosis: Diagnosis
    mending: Mending | None
    plain: str
    newer: str

    @property
    def is_passed(self) -> bool:
        """Whether the doctor says that a restart is exact."""
        return self.diagnosis.verdict in ("healthy", "repairable")


def judge(r: Recording, name: str, files: dict[str, bytes], table: NativeTable, history: ForeignHistory) -> Judged:
    """Ask doctor and oracle."""
    partitions = dict.fromkeys(r.latest, 0)
    kafka = {r.topic: TopicSeen("topic-id", partitions, r.latest)}
    facts = ForeignFacts(parse_checkpoint(files), (history,), kafka)
    diagnosis = diagnose("checkpoint", facts)
    plain = restart(files, table, r.topic, r.latest)
    # The versions differ in what they make of a missing id only.
    newer = plain if "metadata" in files else restart(files, table, r.topic, r.latest, spark="4.2")
    return Judged(name, diagnosis, mend(facts, diagnosis), plain, newer)


def check_promise(r: Recording, case: Judged, table: NativeTable, history: ForeignHistory) -> None:
    """Assert what must hold in every case."""
    found = [(finding.rule, finding.verdict) for finding in case.diagnosis.findings]
    if case.is_passed:
        assert (case.plain, case.newer) == ("exact", "exact"), (case.name, found)
    if case.mending is not None and case.mending.files:
        mended = judge(r, f"{case.name}, mended", dict(case.mending.files), table, history)
        assert mended.diagnosis.verdict == "healthy", (mended.name, mended.diagnosis.findings)
        assert (mended.plain, mended.newer) == ("exact", "exact"), mended.name
        assert mended.mending is None, mended.name


@pytest.fixture(autouse=True, scope="module")
def parsed_once() -> Iterator[None]:
    """Parse each content once: a corruption leaves all files but one as they were."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("parse_offsets", "parse_commit", "parse_metadata", "parse_initial_offsets"):
            patch.setattr(checkpoint_facts, name, cache(getattr(checkpoint_facts, name)))
        yield


@cache
def phases(kind: str) -> tuple[Moment, ...]:
    """Return the last moment of each phase of each batch."""
    return tuple({(moment.batch, moment.phase): moment for moment in recording(kind).moments}.values())


def damaged(kind: str) -> list[tuple[Moment, Corruption]]:
    """Return every corruption of some batches, in each phase; in the short form each once, and each fault in each phase."""
    r = recording(kind)
    found = []
    for moment in phases(kind):
        if moment.batch in CORRUPTED_BATCHES:
            stale = older_files(moment.files)
            found += [(moment, one) for one in (*of_files(moment.files, stale, r.other), *of_folders(moment.files))]
    return found if LONG_FORM else each_once(found)


def each_once(cases: list[tuple[Moment, Corruption]]) -> list[tuple[Moment, Corruption]]:
    """Return each corruption in one of the moments that have it, in turn, and each fault in each moment."""
    places: dict[str, list[int]] = {}
    cells: dict[tuple[str, int], int] = {}
    for at, (moment, corruption) in enumerate(cases):
        places.setdefault(corruption.name, []).append(at)
        cells.setdefault((corruption.fault, moment.number), at)
    turns = {of_name[turn % len(of_name)] for turn, of_name in enumerate(places.values())}
    return [cases[at] for at in sorted(turns.union(cells.values()))]


def older_files(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return, under each log file's name, the content of the file before it."""
    found = {}
    for path in files:
        folder, _, name = path.rpartition("/")
        if name.isdecimal() and f"{folder}/{int(name) - 1}" in files:
            found[path] = files[f"{folder}/{int(name) - 1}"]
    return found


@pytest.mark.parametrize("kind", FORMATS)
def test_the_recording_lands_every_record_once(kind: str) -> None:
    r = recording(kind)
    last = r.moments[-1]
    assert restart(last.files, last.table, r.topic, r.latest) == "exact"
    assert {moment.phase for moment in phases(kind)} == set(PHASES)
    assert any("offsets/0" in before.files and "offsets/0" not in after.files for before, after in pairwise(r.moments))


@pytest.mark.parametrize("kind", FORMATS)
def test_every_crash_prefix_is_healthy(kind: str) -> None:
    r = recording(kind)
    for moment in r.moments:
        case = judge(r, f"{kind} after effect {moment.number}", moment.files, moment.table, r.history(moment.log))
        assert case.plain == "exact", case.name
        assert case.mending is None, case.name
        expected = "healthy" if moment.table.epochs else "starting"
        assert case.diagnosis.verdict == expected, (case.name, case.diagnosis.findings)


@pytest.mark.parametrize("kind", FORMATS)
def test_no_corruption_is_passed_that_a_restart_would_not_survive(kind: str) -> None:
    r = recording(kind)
    history = cache(r.history) if kind == "delta" else r.history
    cells: Counter[tuple[str, str]] = Counter()
    outcomes: Counter[tuple[str, str]] = Counter()
    mended = 0
    for moment, corruption in damaged(kind):
        name = f"{kind} batch {moment.batch} {moment.phase}: {corruption.name}"
        case = judge(r, name, dict(corruption.files), moment.table, history(moment.log))
        check_promise(r, case, moment.table, history(moment.log))
        cells[corruption.fault, moment.phase] += 1
        outcomes[case.diagnosis.verdict, case.plain] += 1
        mended += bool(case.mending and case.mending.files)
    assert {phase for _, phase in cells} == set(PHASES)
    # Before the first plan there is no log yet that could have a stray, or a stale file.
    empty = [(fault, phase) for fault in FAULTS for phase in PHASES[1:] if not cells[fault, phase]]
    assert empty == []
    assert sum(cells.values()) >= FEWEST_CASES
    assert all(outcomes["needs_person", outcome] for outcome in ("fails", "loses", "doubles"))
    assert outcomes["healthy", "exact"]
    assert outcomes["repairable", "exact"]
    assert mended > outcomes["needs_person", "fails"] / 3


@pytest.mark.parametrize("kind", FORMATS)
def test_no_older_copy_of_a_checkpoint_is_passed(kind: str) -> None:
    r = recording(kind)
    found: Counter[str] = Counter()
    for newer in phases(kind):
        for older in phases(kind):
            if older.number < newer.number and older.table.epochs != newer.table.epochs:
                name = f"{kind} effect {older.number} beside the table of effect {newer.number}"
                case = judge(r, name, older.files, newer.table, r.history(newer.log))
                check_promise(r, case, newer.table, r.history(newer.log))
                found[case.diagnosis.verdict] += 1
    assert found["needs_person"] > FEWEST_CASES / 2
    assert set(found) <= {"needs_person", "healthy"}  # healthy: only the newest batch is not finished in the copy


@pytest.mark.parametrize("kind", FORMATS)
def test_no_change_of_the_table_behind_the_streams_back_is_passed(kind: str) -> None:
    r = recording(kind)
    seen: Counter[str] = Counter()
    for moment in phases(kind):
        for change, table, log in changed_tables(r, moment):
            case = judge(r, f"{kind} batch {moment.batch} {moment.phase}: table {change}", moment.files, table, r.history(log))
            check_promise(r, case, table, r.history(log))
            # A table rolled back to the epoch before the batch in flight gets that batch again.
            assert case.diagnosis.verdict == "needs_person" or case.plain == "exact", (case.name, case.diagnosis.findings)
            seen[change] += case.diagnosis.verdict == "needs_person"
    assert len(seen) == (4 if kind == "delta" else 5)
    assert min(seen.values()) >= len(PHASES)
