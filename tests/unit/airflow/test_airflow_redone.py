"""The watcher of redos: each is told once, in order, also what came while Airflow was down, and nothing from before."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from airflow._shared.module_loading import import_string
from tests.support.streams.stand_ins import orders, settings_fixture  # noqa: F401
from tests.support.worlds.proof_world import offsets

from lakebound.control.folder import ControlFolder
from lakebound.control.progress import Progress, write_progress
from lakebound.control.redone import Redone, TableRedone, note_redone, ranges_of, read_redone
from lakebound.settings import Settings
from lakebound_airflow.assets import table_asset
from lakebound_airflow.triggers import redone as watching
from lakebound_airflow.triggers.redone import TableRedoneTrigger

TABLE, OTHER = "delta:lake.orders", "iceberg:lake.orders"


class Store:
    """Stands for the store of the asset's state."""

    def __init__(self) -> None:
        self.held: dict[str, Any] = {}

    async def aget(self, key: str, default: Any) -> Any:
        return self.held.get(key, default)

    async def aset(self, key: str, value: Any) -> None:
        self.held[key] = value


@pytest.fixture
def control(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> ControlFolder:
    monkeypatch.setattr(watching, "POLL_SECONDS", 0.05)
    return orders(settings).control


def redo(control: ControlFolder, plan: str, *tables: str) -> None:
    """Note a redo of some tables."""
    done = TableRedone(version=f"version of {plan}", ranges=ranges_of(offsets((0, 3, 9))))
    note_redone(control, Redone(at=1_800_000_000.0, plan=plan, tables=dict.fromkeys(tables or (TABLE, OTHER), done)))


def events(store: Store | None, number: int, meanwhile: Any = None) -> list[dict[str, Any]]:
    """Watch until so many events came, and return them."""

    async def watch() -> list[dict[str, Any]]:
        classpath, arguments = TableRedoneTrigger("orders", TABLE).serialize()
        trigger = import_string(classpath)(**arguments)
        trigger.asset_state_store = store
        found: list[dict[str, Any]] = []
        running = trigger.run()
        async with asyncio.timeout(20):
            coming = asyncio.ensure_future(anext(running))
            if meanwhile is not None:
                await asyncio.sleep(0.5)
                assert not coming.done(), "what was there before is not told"
                meanwhile()
            found.append((await coming).payload)
            while len(found) < number:
                found.append((await anext(running)).payload)
        return found

    return asyncio.run(watch())


@pytest.mark.parametrize("store", [Store(), None], ids=["with a store", "without"])
def test_what_is_redone_from_now_on_is_told_in_order(control: ControlFolder, store: Store | None) -> None:
    redo(control, "before")
    write_progress(
        control, Progress(pipeline="orders", app_id="a", started_at=0, updated_at=0, high_water_marks={"orders": {0: 40}})
    )

    def meanwhile() -> None:
        for plan, tables in (("p1", (TABLE, OTHER)), ("p2", (OTHER,)), ("p3", (TABLE,))):
            redo(control, plan, *tables)

    found = events(store, 2, meanwhile)
    assert [(event["redone"]["plan"], event["version"]) for event in found] == [
        ("p1", "version of p1"),
        ("p3", "version of p3"),
    ]
    assert (found[0]["pipeline"], found[0]["table"], found[0]["offsets"]) == ("orders", TABLE, {"orders": {0: 40}})
    assert (found[0]["commits"], found[0]["rows"]) == (0, 0)


def test_what_was_redone_while_nobody_watched_is_told_later(control: ControlFolder) -> None:
    redo(control, "p1")
    redo(control, "p2")
    store = Store()
    store.held["redone"] = read_redone(control)[1].number
    assert [event["redone"]["plan"] for event in events(store, 1)] == ["p2"]


def test_a_table_s_asset_is_watched_for_both_and_others_are_not() -> None:
    watchers = table_asset("orders", TABLE).watchers
    assert len({watcher.name for watcher in watchers}) == len(watchers) == 2
    assert isinstance(watchers[1].trigger, TableRedoneTrigger)
