"""After a commit of windows that failed, nothing is committed behind it: its rows would be in no table."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from lakebound.ledger.entry import Offsets, add, count
from lakebound.ledger.windows import WindowPosition, WindowStart, WindowState
from lakebound_spark.batch.row_writer import Written
from lakebound_spark.batch.targets import Counts
from lakebound_spark.landing.window_lander import WindowBatch, WindowLander

IDS = {"sensors": "an id"}


@dataclass
class Table:
    """A target that keeps what is committed.

    Attributes:
        id: Of the table.
        is_away: Whether its commits fail.
    """

    id: str
    is_away: bool = False
    covered: Offsets = field(default_factory=dict)
    pending: Offsets = field(default_factory=dict)
    pending_counts: Counts = field(default_factory=Counts)
    last_entry_at: float = 0.0
    states: list[WindowState] = field(default_factory=list)

    @property
    def coverage(self) -> Offsets:
        return add(self.covered, self.pending)

    @property
    def view(self) -> Any:
        return SimpleNamespace(entry=SimpleNamespace(windows=self.states[-1]) if self.states else None)

    def remember(self, landed: Offsets, counts: Counts) -> None:
        self.pending = add(self.pending, landed)

    def commit(self, writer: Any, landed: Offsets, counts: Counts, files: Any, origin: Any) -> None:
        if self.is_away:
            raise OSError("the store is away")
        self.covered, self.pending = add(self.covered, add(self.pending, landed)), {}
        self.states.append(origin.windows)


@pytest.fixture
def tables() -> list[Table]:
    return [Table("one"), Table("other"), Table("quarantine")]


@pytest.fixture
def lander(tables: list[Table], monkeypatch: pytest.MonkeyPatch) -> WindowLander:
    spec = SimpleNamespace(pipeline="minutes", topics=("sensors",), state=SimpleNamespace(max_ahead_ms=1000))
    made = WindowLander(SimpleNamespace(spec=spec, topic_ids=IDS), tables[:2], tables[2], SimpleNamespace(epoch=1), "w", "r")  # type: ignore[arg-type]
    monkeypatch.setattr(made, "_judged", lambda batch, report: None)
    nothing = SimpleNamespace(windows=None)
    monkeypatch.setattr(made, "_land_quarantine", lambda *_: tables[2].commit(None, {}, Counts(), (), nothing))
    made.begin(WindowStart(WindowPosition(ends={0: 0}, horizon={0: 0}), 0), {"sensors": {0: 0}})
    return made


def land(lander: WindowLander, end: int, rows: int, monkeypatch: pytest.MonkeyPatch, late: int = 0) -> None:
    monkeypatch.setattr(lander, "_written", lambda batch, tag, report: Written({}, rows, 0))
    if late:
        read = SimpleNamespace(
            read=late, filtered=0, quarantined=late, quarantine_rows=late, timestamps_ms=None, ranges={}, far_ahead=()
        )
        monkeypatch.setattr(lander, "_judged", lambda batch, report: read)
    batch = WindowBatch(end, None, None, {0: end}, end * 1000, 0, lambda: end * 1000)  # type: ignore[arg-type]
    lander.land(batch, lambda: None)


def ends(table: Table) -> int:
    return count(table.covered)


@pytest.mark.parametrize("away", ["one", "other", "quarantine"])
def test_after_a_commit_that_failed_nothing_is_committed_behind_it(
    tables: list[Table], lander: WindowLander, monkeypatch: pytest.MonkeyPatch, away: str
) -> None:
    land(lander, 10, 0, monkeypatch)
    assert [ends(one) for one in tables[:2]] == [0, 0]
    lander.flush()
    assert [ends(one) for one in tables[:2]] == [10, 10], "batches that say nothing are committed when nothing comes"
    land(lander, 20, 0, monkeypatch)
    failing = next(one for one in tables if one.id == away)
    failing.is_away = True
    with pytest.raises(OSError):
        land(lander, 30, 5, monkeypatch, late=3)
    failing.is_away = False
    lander.flush()
    assert all(ends(one) in (10, 30) for one in tables[:2]) and ends(failing) in (0, 10)
