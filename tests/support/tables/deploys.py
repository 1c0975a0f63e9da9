"""Tables of both formats in which two versions of the code have landed, one after another, and a stand-in for Kafka."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from lakebound.landing.kafka import WrittenSettings
from lakebound.ledger.entry import Entry, high_water_marks, new_commit_id
from lakebound.ledger.sources import Source, remembered
from lakebound.operations.redo import prepare as preparing
from lakebound.settings import Settings
from lakebound.tables.commit import commit_entry
from lakebound.tables.places import places_of
from lakebound.tables.table import open_table
from tests.support.tables.rewinding import StandInKafka, World, described, make_world


@dataclass(frozen=True)
class Kafka(StandInKafka):
    """One that also says how a topic is kept."""

    is_compacted: bool = False

    def written_settings(self, names: Iterable[str]) -> dict[str, WrittenSettings]:
        """Return what is set for each topic."""
        return {name: WrittenSettings(is_compacted=self.is_compacted) for name in names}


@pytest.fixture(name="world")
def world_fixture(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> World:
    """Versions aaa and bbb have landed [0, 20) and [20, 40), and aaa again what follows; Kafka has the records from 7 on."""
    tables = [{"format": name, "name": "lake.orders"} for name in ("delta", "iceberg")]
    made = make_world(settings.home, places_of(settings, described().warehouse), tables=tables)
    made.kafka = Kafka(earliest=7)
    monkeypatch.setattr(preparing, "KafkaFacts", lambda connection: made.kafka)
    monkeypatch.setattr("lakebound.inspection.proof.collect._topics", lambda broker, names: made.kafka.topics(names))
    for number, code in enumerate(("aaa", "bbb", "aaa")):
        deploy(made, code)
        for start in (20 * number, 20 * number + 10):
            made.land(start, start + 10, bad={start + 3})
    return made


def deploy(world: World, code: str) -> None:
    """Open the tables as an application with this code does."""
    for one in world.spec.tables:
        table = open_table(one, world.at)
        view = table.read_ledger()
        known = view.entry.sources if view.entry else ()
        sources = remembered(known, Source(hash=code), high_water_marks(view.coverage), 0)
        draft = Entry(kind="open", pipeline="orders", epoch=world.epoch, commit=new_commit_id(), sources=sources)
        commit_entry(table, view, [], draft, own_epoch=world.epoch, check_lease=lambda: None, attempts=1)
