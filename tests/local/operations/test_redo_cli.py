"""``lakebound redo`` on real tables of both formats, with a stand-in for Kafka: the plan counts what plain readers count."""

from __future__ import annotations

import shlex
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.support.streams.command_line import answer, lakebound, settings  # noqa: F401
from tests.support.tables.deploys import Kafka, deploy, world_fixture  # noqa: F401
from tests.support.tables.foreign_hands import foreign_iceberg
from tests.support.tables.local_tables import TOPIC, offsets
from tests.support.tables.rewinding import World
from tests.support.waiting import wait_until

from lakebound.landing import row_source as code_on_disk
from lakebound.ledger.sources import Source
from lakebound.operations.acknowledge import acknowledge
from lakebound.operations.recovery.rewind import facts as rewinding
from lakebound.operations.redo.replacing import Planned, RedoOvertakenError, check_as_planned
from lakebound.tables.table import open_table


def rows_in(world: World, *spans: tuple[int, int]) -> list[int]:
    """Return how many rows each table has of some offsets."""
    return [sum(start <= at < end for at in world.rows(one) for start, end in spans) for one in world.spec.tables]


def versions(world: World) -> list[str]:
    return [open_table(one, world.at).read_ledger().version for one in world.all]


def test_the_plan_of_a_version_names_what_it_landed_and_what_kafka_no_longer_has(world: World) -> None:
    before = versions(world)
    body = answer("redo", "orders", "--source", "a")
    assert body["redone"][TOPIC]["partitions"] == {"0": [[7, 20], [40, 60]]}
    assert body["gone"][TOPIC]["partitions"] == {"0": [[0, 7]]}
    assert body["made_by"] == ["aaa"]
    assert [share["rows_out"] for share in body["tables"]] == rows_in(world, (7, 20), (40, 60)) == [30, 30]
    assert [share["files"] for share in body["tables"]] == [4, 4]
    page = lakebound("redo", "orders", "--source", "a").stdout
    for said in (
        "cannot be redone, no longer in Kafka, 7 offsets: orders/0 [0, 7)",
        'To apply it: lakebound redo orders --source a --from \'{"orders":{"0":0}}\' --to \'{"orders":{"0":60}}\' --apply',
        "skipChangeCommits",
    ):
        assert said in page, said
    assert versions(world) == before


def test_a_range_that_cuts_through_commits_takes_the_rows_of_its_own_offsets(world: World) -> None:
    body = answer("redo", "orders", "--from", '{"orders": {"0": 15}}', "--to", '{"orders": {"0": 25}}')
    assert [share["rows_out"] for share in body["tables"]] == rows_in(world, (15, 25)) == [9, 9]
    assert [share["files"] for share in body["tables"]] == [2, 2]
    assert body["made_by"] == ["aaa", "bbb"]


def test_what_a_version_lands_after_the_plan_is_no_part_of_it(world: World) -> None:
    plan = answer("redo", "orders", "--source", "aaa")
    world.land(60, 70)
    arguments = shlex.split(plan["apply"])[1:-2]
    assert answer(*arguments)["hash"] == plan["hash"] != answer("redo", "orders", "--source", "aaa")["hash"]
    world.kafka = Kafka(earliest=50)
    again = answer(*arguments)
    assert (again["hash"], again["redone"][TOPIC]["partitions"]) == (plan["hash"], {"0": [[50, 60]]})
    assert any("was started with other code (aaa)" in note for note in again["notes"])


def test_what_is_not_landed_in_both_tables_is_left_to_the_stream(world: World) -> None:
    world.land(60, 70, tables=[world.delta])
    body = answer("redo", "orders", "--from", '{"orders": {"0": 55}}')
    assert body["redone"][TOPIC]["partitions"] == {"0": [[55, 60]]}
    assert body["left_to_stream"][TOPIC]["partitions"]["0"][0][0] == 60


def test_records_of_which_rows_were_erased_are_left_alone(world: World) -> None:
    plan = answer("erase", "orders", "--where", "id = 45")
    lakebound("erase", "orders", "--where", "id = 45", "--apply", plan["hash"])
    body = answer("redo", "orders", "--from", '{"orders": {"0": 40}}', "--to", '{"orders": {"0": 50}}')
    assert body["erased"][TOPIC]["partitions"] == {"0": [[45, 46]]}
    assert body["redone"][TOPIC]["partitions"] == {"0": [[40, 45], [46, 50]]}


def test_what_was_erased_or_taken_back_since_the_plan_is_not_redone(world: World) -> None:
    plan = answer("erase", "orders", "--where", "id = 45")
    lakebound("erase", "orders", "--where", "id = 45", "--apply", plan["hash"])
    for one in world.spec.tables:
        table = open_table(one, world.at)
        view = table.read_ledger()
        check_as_planned(table, view, offsets(46, 60), Planned(0))
        for start, end, what in (
            (40, 50, "rows of 1 of its records were erased"),
            (55, 65, "5 of its offsets were taken back"),
        ):
            with pytest.raises(RedoOvertakenError, match=what):
                check_as_planned(table, view, offsets(start, end), Planned(0))
        with pytest.raises(RedoOvertakenError, match="others changed its rows"):
            check_as_planned(table, view, offsets(46, 60), Planned(1))


def test_rows_that_others_changed_are_named_and_approved(world: World) -> None:
    asked = ("redo", "orders", "--from", '{"orders": {"0": 40}}', "--to", '{"orders": {"0": 50}}')
    before = answer(*asked)
    foreign_iceberg(world.iceberg, world.at).delete("id == 45")
    page, found = lakebound(*asked).stdout, answer(*asked)
    assert "WARNING iceberg:lake.orders: commits by others that changed rows: 1 (version " in page
    assert found["hash"] != before["hash"]
    acknowledge(world.spec, world.iceberg, world.at)
    assert "commits by others that changed rows: 1 (all acknowledged)" in lakebound(*asked).stdout
    assert answer(*asked)["hash"] == found["hash"]


def test_the_code_that_did_it_and_is_still_there_is_named(world: World) -> None:
    ours = answer("redo", "orders", "--source", "aaa")["source"]
    deploy(world, ours)
    world.land(60, 70)
    body = answer("redo", "orders", "--source", ours)
    assert any("would make the same again" in note for note in body["notes"])
    assert not any("would make the same again" in note for note in answer("redo", "orders", "--source", "aaa")["notes"])


def test_a_rewind_says_that_the_code_on_disk_is_the_one_that_did_it_and_asks_for_a_hold(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewinding, "KafkaFacts", lambda connection: world.kafka)
    ours = answer("redo", "orders", "--source", "aaa")["source"]
    world.kafka = Kafka()
    before = int(time.time() * 1000) + 1
    wait_until(lambda: time.time() * 1000 > before + 1, 10, "the next millisecond")
    deploy(world, ours)
    for start in (60, 70):
        world.land(start, start + 10)
    deploy(world, "bbb")
    world.land(80, 90)
    to = datetime.fromtimestamp(before / 1000, UTC).isoformat()
    said = [note for note in answer("rewind", "orders", "--to", to)["notes"] if ours in note]
    assert said and "would make the same rows again" in said[0] and "lakebound control orders hold" in said[0]
    monkeypatch.setattr(code_on_disk, "row_source", lambda *_: Source(hash="mended"))
    assert not any("would make the same" in note for note in answer("rewind", "orders", "--to", to)["notes"])


def test_a_sample_of_the_range_is_compared_with_what_landed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    column = {"rows": 3, "becomes_null": 2, "examples": []}
    against = {"table": "delta:lake.orders", "same": 5, "different": 3, "no_longer": 1, "new": 0}
    body = {"problems": [], "warnings": [], "schemas": [], "ranges": [], "reasons": [], "tables": {"delta:lake.orders": None}}
    body |= dict.fromkeys(("read", "landed", "rows", "filtered", "bad"), 9)
    body |= {"against": against | {"columns": {"city": column}, "not_compared": []}}

    def tried(*_: object, **how: Any) -> dict[str, Any]:
        asked.append(how)
        return body

    monkeypatch.setattr("lakebound.cli.trial.try_pipeline", tried)
    monkeypatch.setattr("lakebound.cli.try_pipeline._print_table", lambda *_: None)
    page = lakebound("redo", "orders", "--source", "a", "--plan", "--sample", "50").stdout
    assert (asked[0]["records"], asked[0]["between"]) == (50, {TOPIC: {0: (40, 60)}}), "its longest interval"
    assert "city: 3 rows change, 2 of them to null" in page and "To apply it:" in page
    assert answer("redo", "orders", "--source", "a", "--sample", "50")["sample"]["against"]["same"] == 5
    assert len(asked) == 2 and answer("redo", "orders", "--source", "a")["sample"] is None
    lakebound("redo", "orders", "--source", "a", "--sample", "50", "--apply", "0" * 12, code=2)


def test_mistakes_are_said(world: World) -> None:
    lakebound("redo", "orders", code=2)
    lakebound("redo", "orders", "--undo", "--source", "aaa", code=2)
    assert "stand on none" in lakebound("redo", "orders", "--undo", code=1).output
    lakebound("redo", "orders", "--source", "aaa", "--to", "earliest", code=2)
    assert "aaa, bbb" in lakebound("redo", "orders", "--source", "ccc", code=1).output
    world.kafka = Kafka(is_compacted=True)
    assert "What works" in lakebound("redo", "orders", "--source", "aaa", code=1).output
