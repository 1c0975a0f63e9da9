"""``lakebound replay`` with a stand-in for the application and for Kafka; the tables are real."""

from __future__ import annotations

import os
import signal
import sys
import threading

import pytest
from tests.support.streams.command_line import answer, lakebound, settings  # noqa: F401
from tests.support.tables import local_tables
from tests.support.tables.local_tables import TOPIC, TOPIC_ID
from tests.support.waiting import wait_until

from lakebound.control.desired import change_desired, read_desired
from lakebound.control.folder import ControlFolder, write_json
from lakebound.control.incidents import read_incidents
from lakebound.control.submission import Submission
from lakebound.inspection.proof.result import Found, Proof, TableProof
from lakebound.ledger.entry import count
from lakebound.ledger.topics import TopicFacts
from lakebound.operations.replay import prepare as preparing
from lakebound.operations.replay.orders import ReplayOrders
from lakebound.settings import Settings
from lakebound.spec.load import load_pipeline
from lakebound.tables.places import places_of
from lakebound.tables.table import open_table

# Says what the real one says; how it ends stands in behaviour.json.
APPLICATION = """
import json, os, signal, sys, time
from lakebound.control.replay_result import ReplayResult, write_result
from lakebound.operations.replay.orders import ReplayOrders
orders = ReplayOrders.model_validate_json(sys.argv[1])
behaviour = json.loads((orders.control.folder / "behaviour.json").read_text())
result = ReplayResult(app_id=orders.app_id, chunks=2, chunks_done=1, read=7)
write_result(orders.control, result)
deadline = time.monotonic() + 30
while behaviour.get("until_asked") and not orders.control.stop_marker(orders.app_id).exists() and time.monotonic() < deadline:
    time.sleep(0.02)
if behaviour.get("die"):
    os.kill(os.getpid(), signal.SIGKILL)
ended = {"state": behaviour["state"], "reason": "told so", "ended_at": time.time(), "chunks_done": 2}
write_result(orders.control, result.model_copy(update=ended))
"""


@pytest.fixture
def control(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> ControlFolder:  # noqa: F811
    """Both tables hold [100, 200) of partition 0; Kafka has [20, 300)."""
    at, spec = places_of(settings, "default"), load_pipeline("orders", settings)
    for table_spec in spec.tables:
        table = local_tables.make_table(table_spec, at)
        app = local_tables.Lander(table, table.read_ledger())
        app.land(100, 200)

    class Kafka:
        def __init__(self, _: object) -> None:
            """Needs no broker."""

        def topics(self, names: tuple[str, ...]) -> dict[str, TopicFacts]:
            return {name: TopicFacts(TOPIC_ID, {0: 20}, {0: 300}) for name in names}

        def offsets_at(self, names: tuple[str, ...], timestamp_ms: int) -> dict[str, dict[int, int]]:
            return {name: {0: 60 if timestamp_ms == 1000 else 80} for name in names}

    def command(orders: ReplayOrders, _: Settings, *, application: str) -> list[str]:
        assert application == "replay.py"
        return [sys.executable, "-c", APPLICATION, orders.model_dump_json(by_alias=True)]

    monkeypatch.setattr(preparing, "KafkaFacts", Kafka)
    monkeypatch.setattr("lakebound.operations.backfill.running.spark_submit_command", command)
    folder = ControlFolder(settings.home, "orders")
    write_json(folder.folder / "behaviour.json", {"state": "completed"})
    return folder


def missing_of(monkeypatch: pytest.MonkeyPatch, **tables: Found) -> None:
    """Have the proof miss something in tables, named by their format."""
    found = tuple(TableProof(table=f"{name}:lake.orders", missing=lost) for name, lost in tables.items())
    monkeypatch.setattr(preparing, "prove", lambda *_, **__: Proof(pipeline="orders", level="rows", tables=found))


def lost(start: int, end: int) -> Found:
    return Found(count=end - start, ranges={TOPIC: {0: ((start, end),)}})


def test_the_plan_says_what_each_table_gets_and_what_is_left_out(control: ControlFolder) -> None:
    body = answer("replay", "orders", "--from", "earliest", "--plan")
    assert body["wanted"] == {TOPIC: {"topic_id": TOPIC_ID, "partitions": {"0": [[20, 100]]}}}
    assert body["left_to_stream"][TOPIC]["partitions"] == {"0": [[200, 300]]} and body["chunks"] == 1
    assert [share["covered"] for share in body["tables"]] == [100, 100]
    text = lakebound("replay", "orders", "--from", "earliest", "--plan").stdout
    assert "offsets in Kafka, orders: 0 [20, 300)" in text and "left to the stream, 100 offsets: orders/0 [200, 300)" in text
    assert "80 offsets to read, in 1 batch" in text
    assert not list(control.folder.glob("replays/*"))


def test_times_and_offsets_as_bounds(control: ControlFolder) -> None:
    between = ("--from", "1970-01-01T00:00:01", "--to", "1970-01-01T00:00:02", "--plan")
    assert answer("replay", "orders", *between)["wanted"][TOPIC]["partitions"] == {"0": [[60, 80]]}
    named = answer("replay", "orders", "--from", '{"orders": {"0": 90}}', "--plan")
    assert named["wanted"][TOPIC]["partitions"] == {"0": [[90, 100]]}
    assert "--from" in lakebound("replay", "orders", code=2).output


def test_what_kafka_has_deleted_is_shown_and_refused(control: ControlFolder) -> None:
    asked = ("replay", "orders", "--from", '{"orders": {"0": 5}}')
    assert "no longer in Kafka, 15 offsets: orders/0 [5, 20)" in lakebound(*asked, "--plan").stdout
    assert "no longer has 15 of the offsets" in lakebound(*asked, code=1).stderr
    assert not list(control.folder.glob("replays/*"))


def test_a_replay_that_completes_fails_or_dies_says_so(control: ControlFolder) -> None:
    asked = ("replay", "orders", "--from", "earliest")
    done = lakebound(*asked)
    assert "completed: told so; read 7 records" in done.stdout and "replay: batch" in done.stderr
    write_json(control.folder / "behaviour.json", {"state": "failed"})
    assert answer(*asked, code=1)["result"]["reason"] == "told so"
    write_json(control.folder / "behaviour.json", {"die": True})
    died = answer(*asked, code=1)["result"]
    assert died["state"] == "failed" and "the application died (exit code -9)" in died["reason"]


def test_ctrl_c_ends_it_after_the_batch_in_flight(control: ControlFolder) -> None:
    write_json(control.folder / "behaviour.json", {"state": "stopped", "until_asked": True})

    def interrupt() -> None:
        wait_until(lambda: list(control.folder.glob("replays/*.json")), 30, "the application")
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    done = lakebound("replay", "orders", "--from", "earliest", code=1)
    thread.join()
    assert "ending after this batch" in done.stderr and "stopped: told so" in done.stdout


def test_nothing_to_replay_starts_nothing(control: ControlFolder) -> None:
    assert answer("replay", "orders", "--from", '{"orders": {"0": 120}}')["result"] is None
    assert not list(control.folder.glob("replays/*"))


def test_a_held_pipeline_is_left_alone(control: ControlFolder) -> None:
    change_desired(control, "held", reason="audit")
    assert "held (audit)" in lakebound("replay", "orders", "--from", "earliest", code=1).stderr
    assert not list(control.folder.glob("replays/*"))


def test_a_pipeline_without_tables_is_told_to_start_first(
    settings: Settings,  # noqa: F811
    control: ControlFolder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LAKEBOUND_WAREHOUSE", str(settings.home / "elsewhere"))
    (settings.home / "elsewhere" / "iceberg").mkdir(parents=True)
    said = lakebound("replay", "orders", "--from", "earliest", code=1).stderr
    assert "delta:lake.orders does not exist yet" in said


class TestMissing:
    def test_gone_rows_are_taken_back_first(
        self,
        control: ControlFolder,
        settings: Settings,  # noqa: F811
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self._delete_rows(settings)
        missing_of(monkeypatch, delta=lost(110, 130), iceberg=Found())
        before = read_desired(control)
        body = answer("replay", "orders", "--missing")
        delta, iceberg = body["plan"]["tables"]
        assert delta["takes_back"][TOPIC]["partitions"] == {"0": [[110, 130]]} and iceberg["takes_back"] == {}
        spec = load_pipeline("orders", settings)
        views = [open_table(table, places_of(settings, "default")).read_ledger() for table in spec.tables]
        assert [count(view.coverage) for view in views] == [80, 100]
        assert read_desired(control).state == before.state
        incident = read_incidents(control)[0]
        assert (incident.kind, incident.facts) == ("repair", {"delta:lake.orders": "orders/0 [110, 130)"})

    def test_not_beside_a_running_stream(
        self,
        control: ControlFolder,
        settings: Settings,  # noqa: F811
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self._delete_rows(settings)
        missing_of(monkeypatch, delta=lost(110, 130))
        monkeypatch.setattr("lakebound.operations.replay.alone.living_submission", lambda _: Submission(app_id="orders-g0-1"))
        said = lakebound("replay", "orders", "--missing", code=1).stderr
        assert "20 offsets" in said and "orders-g0-1 runs" in said and "Stop the pipeline" in said
        table = open_table(load_pipeline("orders", settings).tables[0], places_of(settings, "default"))
        assert count(table.read_ledger().coverage) == 100

    def test_rows_that_no_replay_can_bring_back_are_named(
        self, control: ControlFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        missing_of(monkeypatch, delta=lost(110, 111))
        body = answer("replay", "orders", "--missing")
        assert body["result"] is None and "rewind" in body["plan"]["notes"][0]

    def test_a_gap_is_replayed_whole_and_one_that_kafka_lost_is_named(
        self, control: ControlFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        gap = TableProof(table="delta:lake.orders", missing=lost(15, 16), gaps=lost(15, 40))
        monkeypatch.setattr(preparing, "prove", lambda *_, **__: Proof(pipeline="orders", level="rows", tables=(gap,)))
        said = lakebound("replay", "orders", "--missing", code=1)
        assert "no longer has 5 of the offsets" in said.stderr
        body = answer("replay", "orders", "--missing", "--from", "earliest", "--plan")
        assert body["wanted"][TOPIC]["partitions"] == {"0": [[20, 40]]}

    def _delete_rows(self, settings: Settings) -> None:  # noqa: F811
        from deltalake import DeltaTable

        spec = load_pipeline("orders", settings)
        DeltaTable(str(places_of(settings, "default").delta_path(spec.tables[0]))).delete("id >= 110 and id < 130")
