"""The command `lakebound erase`: the plan names the command that applies it, and says what it does not erase."""

from __future__ import annotations

import shlex

import pytest
from tests.support.streams.command_line import answer, lakebound, settings  # noqa: F401
from tests.support.tables.local_tables import landed_offsets
from tests.support.tables.rewinding import World, described, make_world

from lakebound.settings import Settings
from lakebound.tables.places import places_of
from lakebound.tables.table import open_table


@pytest.fixture
def world(settings: Settings) -> World:  # noqa: F811
    """The pipeline of the command line, with thirty rows in each table."""
    tables = [{"format": name, "name": "lake.orders"} for name in ("delta", "iceberg")]
    made = make_world(settings.home, places_of(settings, described().warehouse), tables=tables)
    made.land(0, 30)
    return made


def test_a_plan_is_applied_by_the_command_that_it_names(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    page = lakebound("erase", "orders", "--where", "city = 'city 1'").stdout
    assert "10 rows" in page and "orders/0@1" in page
    for place in ("Kafka", "quarantine", "backups", "VACUUM", "snapshot expiry", "skipChangeCommits"):
        assert place in page, place
    assert [len(landed_offsets(open_table(one, world.at))) for one in world.spec.tables] == [30, 30]
    command = page.rpartition("To apply it: ")[2].strip()
    monkeypatch.setattr("lakebound.inspection.proof.collect._topics", lambda broker, names: world.kafka.topics(names))
    done = lakebound(*shlex.split(command)[1:], "--reason", "ticket 7").stdout
    assert "erase: 10 rows by decision: ticket 7; done" in done
    assert [len(landed_offsets(open_table(one, world.at))) for one in world.spec.tables] == [20, 20]


def test_a_plan_as_json_has_no_offsets_but_the_first(world: World) -> None:
    body = answer("erase", "orders", "--where", "id < 2")
    assert (body["rows"], [share["rows"] for share in body["tables"]]) == (2, [2, 2])
    assert body["hash"] in body["apply"] and body["below"] == {"orders": {"0": 30}}


def test_mistakes_are_said(world: World) -> None:
    assert "no row" in lakebound("erase", "orders", "--where", "id = 99", code=1).output
    assert "--where cannot be evaluated" in lakebound("erase", "orders", "--where", "nothing = 1", code=1).output
    lakebound("erase", "orders", "--where", "id = 1", "--below", "earliest", code=2)
    changed = lakebound("erase", "orders", "--where", "id = 1", "--apply", "000000000000", code=1)
    assert "the facts have changed" in changed.output
