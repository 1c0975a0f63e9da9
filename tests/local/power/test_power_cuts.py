"""After a power cut at any moment, whatever of the unsynced is lost, every table opens, agrees with its ledger and goes on."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.support.power.disk import ROOT, Event, Named, Reached, State, Synced, states
from tests.support.power.oracle import Held, read_delta, read_iceberg
from tests.support.power.pipelines import NAMES, stories
from tests.support.power.recording import Recording
from tests.support.power.stories import OF_ONE_TABLE, Story, Told
from tests.support.tables.local_tables import places
from tests.support.tables.rewinding import readable

from lakebound.spec.table import TableSpec
from lakebound.tables.iceberg import open as iceberg_catalog
from lakebound.tables.iceberg.catalog import LedgerCatalog
from lakebound.tables.places import Places

WHOLE = os.environ.get("LAKEBOUND_POWER_CUTS") == "all"
MOST = 200 if WHOLE else 4
"""States of one moment; where there are more, as many are chosen by seed."""
SHARE = 1 if WHOLE else 4
"""One state of so many is judged, and which ones depends on the seed."""
pytestmark = pytest.mark.timeout(7200 if WHOLE else 600)
SEED = int(os.environ.get("LAKEBOUND_POWER_CUTS_SEED", "1"))


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder in memory, where there is such a thing: thousands of states are written into it."""
    shared = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="lakebound-power-", dir=shared if shared.is_dir() else None))
    yield folder
    forget_catalogs()
    shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def no_retention(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakebound.operations.maintenance.delta.engine._MIN_REMOVED_HOURS", 0)


def forget_catalogs() -> None:
    """Close this process's catalogs: a connection would go on with files that are no longer there."""
    for catalog in OPENED:
        catalog.engine.dispose()
    OPENED.clear()
    iceberg_catalog._open_catalog.cache_clear()


OPENED: list[LedgerCatalog] = []


@pytest.fixture(autouse=True)
def opened_catalogs(monkeypatch: pytest.MonkeyPatch) -> None:
    real = iceberg_catalog._connect

    def connect(uri: str, warehouse: Path) -> LedgerCatalog:
        OPENED.append(real(uri, warehouse))
        return OPENED[-1]

    monkeypatch.setattr(iceberg_catalog, "_connect", connect)


def look(spec: TableSpec, at: Places) -> Held | None:
    if spec.format == "delta":
        return read_delta(at.delta_path(spec))
    return read_iceberg(Path(at.iceberg_catalog_uri.removeprefix("sqlite:///")), spec.name)


def judge(state: State, story: Story, told: Told, at: Places) -> str:
    """Return what is wrong with a state, or with what the next start makes of it; empty where nothing is."""
    for moment, allowed in (("", told.allowed[state.mark]), ("after the next start ", _only(story.finally_))):
        try:
            if moment:
                story.start_again(at)
            found = {name: look(spec, at) for name, spec in story.tables.items()}
        except Exception as exc:
            return f"{moment}it does not open: {type(exc).__name__}: {exc}"
        for name, held in found.items():
            if held not in allowed[name]:
                return f"{moment}{name} holds {held}, and may hold {allowed[name]}"
        if fault := story.fault(found):
            return f"{moment}{fault}"
    return ""


def _only(held: Mapping[str, Held]) -> dict[str, tuple[Held | None, ...]]:
    return {name: (one,) for name, one in held.items()}


@dataclass
class Cuts:
    """What was looked at, and what was wrong with it."""

    operations: int = 0
    syncs: int = 0
    states: int = 0
    seconds: float = 0.0
    problems: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return (
            f"{self.operations} operations, {self.syncs} syncs, {self.states} states, {self.seconds:.1f} s, "
            f"{self.problems.total()} bad"
        )


def cut_everywhere(
    story: Story, root: Path, monkeypatch: pytest.MonkeyPatch, without: Callable[[Event], bool] | None = None
) -> Cuts:
    """Do the work once, and judge what a power cut at any moment leaves.

    Args:
        story: The work.
        root: Where it is done.
        monkeypatch: For the recording.
        without: Which operations count as not done: a mutation of the product; the first harm that it does is enough.
    """
    at = places(root / "world")
    at.home.mkdir()
    story.prepare(at)
    forget_catalogs()
    recording = Recording(at.home)
    with recording.running(monkeypatch):
        told = Told(recording, dict(story.before))
        story.work(at, told)
    forget_catalogs()
    cuts, began = Cuts(len(recording.events), recording.syncs), time.monotonic()
    begin = next(number for number, event in enumerate(recording.events) if isinstance(event, Reached))
    events = [event for number, event in enumerate(recording.events) if number < begin or not (without and without(event))]
    for number, state in enumerate(states(events, seed=SEED, most=MOST), SEED):
        if number % SHARE and not without:
            continue
        state.put_at(at.home)
        problem = judge(state, story, told, at)
        forget_catalogs()
        cuts.states += 1
        if problem:
            cuts.problems[f"{state.mark}: {problem[:400]}"] += 1
            if without:
                break
    cuts.seconds = time.monotonic() - began
    return cuts


def assert_harmless(name: str, cuts: Cuts) -> None:
    print(f"{name}: {cuts}")
    assert not cuts.problems, "\n".join(f"{number} x {kind}" for kind, number in cuts.problems.most_common(8))


@pytest.mark.parametrize("story", OF_ONE_TABLE, ids=lambda story: story.name)
def test_a_table(story: Story, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_harmless(story.name, cut_everywhere(story, root, monkeypatch))


@pytest.mark.parametrize("name", NAMES)
def test_a_pipeline(name: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakebound.inspection.proof.collect.read_offsets", readable)
    assert_harmless(name, cut_everywhere(stories(monkeypatch)[name], root, monkeypatch))


def test_the_catalog_is_on_the_disk_when_a_commit_is_over(at: Places) -> None:
    """What the recording takes for granted: SQLite syncs its log at each commit (synchronous=FULL)."""
    catalog = iceberg_catalog.open_catalog(at)
    with catalog.engine.connect() as connection:
        found = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")]
    assert found == ["wal", 2]


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
@pytest.mark.parametrize("what", ["files", "folders"])
def test_a_writer_that_does_not_sync_is_found_out(what: str, format_: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The enumeration itself: without the syncs of files, or of folders, it finds tables that are torn or lack rows."""
    story = next(one for one in OF_ONE_TABLE if one.name == f"{format_}: appends")
    folders = {ROOT}

    def is_dropped(event: Event) -> bool:
        if isinstance(event, Named):
            folders.update(key[0] for key, _ in event.changes)
        return isinstance(event, Synced) and (event.node in folders) == (what == "folders")

    cuts = cut_everywhere(story, root, monkeypatch, is_dropped)
    assert cuts.problems, f"{cuts}"
