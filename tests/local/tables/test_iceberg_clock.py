"""A clock that is set back leaves an Iceberg table readable: its logs stay sorted, as Java demands to within a minute."""

from __future__ import annotations

import datetime
import itertools
import random
import time
from typing import Any

import pyarrow as pa
import pyiceberg.table.update as pyiceberg_update
import pytest
from tests.support.streams.long_form import LONG_FORM, each_value_once
from tests.support.tables.foreign_hands import foreign_iceberg
from tests.support.tables.local_tables import genesis, landed_offsets, lander, make_table
from tests.support.tables.maintained import small_commits

from lakebound.control.folder import ControlFolder
from lakebound.control.turns import AskForTurn
from lakebound.operations.maintenance.iceberg.expiry import expire
from lakebound.operations.maintenance.steps import ExpireSnapshots
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places
from lakebound.tables.schema_change import Addition, SchemaPlan
from lakebound.tables.table import open_table

SPEC = TableSpec(format="iceberg", name="shop.orders")
BACK_SECONDS = 300.0
_names = itertools.count()


class Clock:
    """This machine's, which can be set back."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.behind = 0.0
        now, now_ns, clock = time.time, time.time_ns, self

        class Datetime(datetime.datetime):
            @classmethod
            def now(cls, tz: datetime.tzinfo | None = None) -> Any:
                return cls.fromtimestamp(now() - clock.behind, tz)

        monkeypatch.setattr(time, "time", lambda: now() - self.behind)
        monkeypatch.setattr(time, "time_ns", lambda: now_ns() - int(self.behind * 1e9))
        monkeypatch.setattr(pyiceberg_update, "datetime", Datetime)

    def set_back(self) -> None:
        self.behind += BACK_SECONDS


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def land(at: Places) -> None:
    app = lander(SPEC, at, epoch=10)
    end = max((end for _, end in app.view.coverage["orders"].partitions[0]), default=0) if app.view.coverage else 0
    app.land(end, end + 1)


def add_column(at: Places) -> None:
    plan = SchemaPlan(additions=(Addition((f"note_{next(_names)}",), pa.string()),))
    open_table(SPEC, at).change_schema(plan, None)


def set_property(at: Places) -> None:
    open_table(SPEC, at).set_properties({f"owner-{next(_names)}": "shop"}, None)


def rewind(at: Places) -> None:
    table = open_table(SPEC, at)
    oldest = [version for version in table.history().versions() if version.entry is not None and version.entry.kind == "land"][
        -1
    ]
    assert oldest.entry is not None
    table.restore(oldest.version, genesis(10).model_copy(update={"kind": "reset", "coverage": oldest.entry.coverage}))


def expire_one(at: Places) -> None:
    ids = [snapshot.snapshot_id for snapshot in foreign_iceberg(SPEC, at).metadata.snapshots]
    step = ExpireSnapshots(table=SPEC.id, reason="a test", snapshot_ids=tuple(ids[1:2]))
    expire(SPEC, step, at, AskForTurn(ControlFolder(at.home, "shop"), SPEC.id))


WORK = (land, add_column, set_property, rewind, expire_one)


def assert_sorted(at: Places) -> None:
    """Check what Java's TableMetadata checks, without its minute."""
    metadata = foreign_iceberg(SPEC, at).metadata
    for log in (metadata.snapshot_log, metadata.metadata_log):
        times = [entry.timestamp_ms for entry in log]
        assert times == sorted(times)
        assert not times or metadata.last_updated_ms >= times[-1]


@each_value_once
@pytest.mark.parametrize("second", WORK)
@pytest.mark.parametrize("first", WORK)
def test_whatever_is_done_before_and_after_it_is_set_back(first: Any, second: Any, clock: Clock, at: Places) -> None:
    small_commits(SPEC, at, 4)
    first(at)
    clock.set_back()
    second(at)
    assert_sorted(at)
    land(at)
    assert_sorted(at)


@pytest.mark.parametrize("seed", range(3 if LONG_FORM else 1))
def test_set_back_again_and_again(seed: int, clock: Clock, at: Places) -> None:
    chance = random.Random(seed)
    make_table(SPEC, at)
    clock.set_back()
    small_commits(SPEC, at, 3)
    for _ in range(12):
        chance.choice(WORK)(at)
        assert_sorted(at)
        if chance.random() < 0.6:
            clock.set_back()
    rows = landed_offsets(open_table(SPEC, at))
    assert rows == list(range(len(rows)))
