"""An entry that maintenance carried on, alone: somebody else's clean-up has taken all other commits out of the history.

Such an entry may be older than the table where the commit did not check that it carried the newest. Going on from an older one
would land rows twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.support.streams.long_form import LONG_FORM
from tests.support.tables.foreign_hands import commit_without_entry, forget_all_but_newest
from tests.support.tables.local_tables import Lander, app_fixture, landed_offsets, lander, make_table, offsets, places  # noqa: F401
from tests.support.tables.maintenance import carry

from lakebound.errors import LakeboundError, LedgerBehindError, NoLedgerError
from lakebound.ledger.entry import Entry, carried
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places
from lakebound.tables.table import open_table


def lagging(app: Lander, spec: TableSpec, at: Places) -> None:
    """Leave the table with rows up to 20, and one entry, which says 10: as maintenance of an older version carried it on."""
    entry = open_table(spec, at).read_ledger().entry
    assert entry is not None
    app.land(10, 20)
    carry(spec, at, carried(entry).model_copy(update={"carries": None}))
    forget_all_but_newest(spec, at)


def test_no_start_goes_on_from_a_carried_entry_that_is_older_than_the_rows(app: Lander, spec: TableSpec, at: Places) -> None:
    lagging(app, spec, at)
    later = lander(spec, at, epoch=2)
    with pytest.raises(LedgerBehindError, match="rows of 10 offsets"):
        later.open()
    with pytest.raises(LedgerBehindError, match="rows of 10 offsets"):
        later.land(10, 20)
    assert landed_offsets(later.table) == list(range(20))


def test_a_running_stream_does_not_go_on_from_it_either(app: Lander, spec: TableSpec, at: Places) -> None:
    lagging(app, spec, at)
    with pytest.raises(LedgerBehindError, match="rows of 10 offsets"):
        app.land(20, 30)
    app.view = app.table.read_ledger()
    with pytest.raises(LedgerBehindError, match="rows of 10 offsets"):
        app.land(10, 20)
    assert landed_offsets(app.table) == list(range(20))


def test_one_that_the_rows_agree_with_is_gone_on_from(app: Lander, spec: TableSpec, at: Places) -> None:
    entry = app.view.entry
    assert entry is not None
    carry(spec, at, carried(entry).model_copy(update={"carries": None}))
    forget_all_but_newest(spec, at)
    later = lander(spec, at, epoch=2)
    later.open()
    later.land(10, 20)
    assert landed_offsets(later.table) == list(range(20))


def test_one_that_names_the_entry_that_it_carries_is_believed_without_reading_rows(
    app: Lander, spec: TableSpec, at: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = app.view.entry
    assert entry is not None
    carry(spec, at, carried(entry))
    carry(spec, at, carried(carried(entry)))
    forget_all_but_newest(spec, at)
    later = lander(spec, at, epoch=2)
    monkeypatch.setattr(type(later.table), "reconstruct", lambda self: pytest.fail("the rows were read"))
    assert later.view.entry is not None
    assert (later.view.entry.carries, later.view.may_lag) == (entry.commit, False)
    later.open()
    later.land(10, 20)
    assert landed_offsets(later.table) == list(range(20))


@dataclass
class World:
    """A table, what it should hold, and the maintenance that has begun on it."""

    spec: TableSpec
    at: Places
    app: Lander
    landed: int = 0
    prepared: Entry | None = None
    refusals: list[str] = field(default_factory=list)

    def land(self) -> None:
        """The stream lands three offsets, or is refused; it then reads the ledger again, as a restarted query does."""
        for _ in range(2):
            start = self.mark()
            try:
                self.app.land(start, start + 3)
                self.landed = max(self.landed, start + 3)
                return
            except LakeboundError as exc:
                self.refusals.append(type(exc).__name__)
                try:
                    self.app.view = self.app.table.read_ledger()
                except NoLedgerError:
                    return

    def mark(self) -> int:
        """The next offset by the ledger that the stream has read."""
        held = self.app.view.coverage
        return held["orders"].partitions[0][-1][1] if held else 0

    def start(self) -> None:
        """Another application starts."""
        try:
            self.app = lander(self.spec, self.at, epoch=self.app.epoch + 1)
            self.app.open()
        except LakeboundError as exc:
            self.refusals.append(type(exc).__name__)

    def begin_maintenance(self) -> None:
        """Maintenance reads what it is to carry on."""
        try:
            entry = open_table(self.spec, self.at).read_ledger().entry
        except NoLedgerError:
            return
        self.prepared = None if entry is None else carried(entry)

    def end_old_maintenance(self) -> None:
        """Maintenance as it once was: its commit carries what was read when it began, whatever landed since."""
        if self.prepared is not None:
            carry(self.spec, self.at, self.prepared.model_copy(update={"carries": None}))

    def end_maintenance(self) -> None:
        """Maintenance as it is: its commit carries the newest entry, on the version of that entry, or is refused."""
        try:
            view = open_table(self.spec, self.at).read_ledger()
        except NoLedgerError:
            return
        if view.entry is not None:
            carry(self.spec, self.at, carried(view.entry))

    def clean_up(self) -> None:
        """Somebody else keeps the newest commit alone."""
        forget_all_but_newest(self.spec, self.at)

    def write(self) -> None:
        """Somebody else commits without an entry."""
        commit_without_entry(self.spec, self.at)


STEPS = [name for name in vars(World) if not name.startswith("_") and callable(vars(World)[name]) and name != "mark"]


@pytest.mark.parametrize("spec", ["delta", "iceberg"], indirect=True)
@given(steps=st.lists(st.sampled_from(STEPS), min_size=2, max_size=9))
@example(steps=["begin_maintenance", "land", "end_old_maintenance", "clean_up", "start", "land"])
@example(steps=["begin_maintenance", "land", "end_maintenance", "clean_up", "start", "land"])
@example(steps=["land", "end_maintenance", "land", "clean_up", "land", "end_maintenance", "clean_up", "land"])
@settings(
    max_examples=300 if LONG_FORM else 8, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_whatever_the_order_nothing_lands_twice_and_nothing_is_lost(
    spec: TableSpec, tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    at = places(tmp_path_factory.mktemp("world"))
    make_table(spec, at)
    world = World(spec, at, lander(spec, at))
    world.app.open()
    for step in ("land", *steps, "land"):
        getattr(world, step)()
    assert landed_offsets(world.app.table) == list(range(world.landed)), (steps, world.refusals)
    assert world.landed >= 3
    if not {"end_old_maintenance", "write"} & {*steps}:
        assert not set(world.refusals) & {"LedgerBehindError", "NoLedgerError", "LedgerWentBackError"}, "it goes on"
        assert world.app.view.coverage == offsets(0, world.landed)
