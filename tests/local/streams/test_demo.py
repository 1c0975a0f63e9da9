"""The demo's judgement: the journal of acknowledged records against real tables, and its last line."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.streams.command_line import lakebound
from tests.support.tables.local_tables import TOPIC, Lander, lander, make_table
from tests.support.waiting import HANGS_SECONDS

from lakebound.control import processes
from lakebound.control.private_files import make_private_folder
from lakebound.inspection.visible_freshness import VisibleFreshness
from lakebound.local import stack
from lakebound.local.demo import DemoFailedError, Judgement, find_problems, judge, last_line, run_demo
from lakebound.settings import load_settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.spec.warehouse import local_warehouse
from lakebound.tables.places import Places

EXAMPLES = Path(__file__).parents[3] / "include" / "pipelines"

SPEC = PipelineSpec.model_validate(
    {
        "pipeline": "orders",
        "topics": [TOPIC],
        "connection": {"bootstrap_servers": "127.0.0.1:1"},
        "value": {"format": "bytes"},
        "freshness": "1s",
        "tables": [{"format": "delta", "name": "shop.orders"}, {"format": "iceberg", "name": "shop.orders"}],
    }
)

STUB = """
import signal, sys, threading
from lakebound.local import demo
from lakebound.settings import load_settings

# A background job of a shell without job control inherits an ignored SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)

def up(*_, **__):
    print("started", flush=True)
    threading.Event().wait()

def down(*_, **__):
    print("stopping", flush=True)
    sys.stdin.readline()
    print("stopped", flush=True)

demo.stack.up, demo.stack.down = up, down
demo.run_demo(load_settings())
"""


@pytest.fixture
def apps(at: Places) -> tuple[Lander, Lander, Lander]:
    """Delta, Iceberg, quarantine."""
    delta, iceberg, quarantine = (*SPEC.tables, SPEC.quarantine_table)
    for table in (delta, iceberg, quarantine):
        make_table(table, at)
    return lander(delta, at), lander(iceberg, at), lander(quarantine, at)


def journal(folder: Path, offsets: Iterable[int]) -> Path:
    path = folder / "journal.csv"
    lines = [f"{TOPIC},0,{offset},hash" for offset in offsets]
    path.write_text("\n".join(["topic,partition,offset,sha256", *lines]) + "\n")
    return path


def test_what_is_in_every_table_or_in_quarantine_is_landed(
    apps: tuple[Lander, Lander, Lander], at: Places, tmp_path: Path
) -> None:
    delta, iceberg, quarantine = apps
    delta.land(0, 18)
    iceberg.land(0, 18)
    quarantine.land(18, 20)
    found = judge(journal(tmp_path, range(20)), [(SPEC, at)])
    assert found == Judgement(20, {"delta": 18, "iceberg": 18}, quarantined=2, missing=0, duplicated=0)


def test_each_pipeline_s_tables_are_looked_for_in_its_own_warehouse(
    apps: tuple[Lander, Lander, Lander], at: Places, tmp_path: Path
) -> None:
    delta, iceberg, quarantine = apps
    for app in (delta, iceberg):
        app.land(0, 20)
    quarantine.open()
    other = SPEC.model_copy(update={"pipeline": "returns", "tables": (TableSpec(format="iceberg", name="shop.returns"),)})
    elsewhere = at.model_copy(update={"warehouse": local_warehouse(tmp_path / "elsewhere")})
    for table in (*other.tables, other.quarantine_table):
        make_table(table, elsewhere)
    lander(other.tables[0], elsewhere).land(0, 20)
    lander(other.quarantine_table, elsewhere).open()
    found = judge(journal(tmp_path, range(20)), [(SPEC, at), (other, elsewhere)])
    assert found == Judgement(20, {"delta": 20, "iceberg": 20}, quarantined=0, missing=0, duplicated=0)


def test_a_table_whose_commits_were_not_seen_is_named() -> None:
    good = Judgement(2, {"delta": 2, "iceberg": 2}, quarantined=0, missing=0, duplicated=0)
    seen = {"delta:shop.orders": VisibleFreshness(1, 1, 1, 1, 1, rows=2, commits=1, files=1)}
    assert find_problems(2, [], good, ["delta:shop.orders"], seen) == []
    (problem,) = find_problems(2, [], good, ["delta:shop.orders", "iceberg:shop.orders"], seen)
    assert problem.startswith("iceberg:shop.orders")


def test_a_record_that_one_table_lacks_is_missing(apps: tuple[Lander, Lander, Lander], at: Places, tmp_path: Path) -> None:
    delta, iceberg, _ = apps
    delta.land(0, 20)
    iceberg.land(0, 17)
    found = judge(journal(tmp_path, range(20)), [(SPEC, at)])
    assert found == Judgement(17, {"delta": 20, "iceberg": 17}, quarantined=0, missing=3, duplicated=0)


def test_a_second_row_of_a_record_is_doubled(apps: tuple[Lander, Lander, Lander], at: Places, tmp_path: Path) -> None:
    delta, iceberg, _ = apps
    delta.land(0, 20)
    iceberg.land(0, 20)
    # Files of offsets 5 to 7 once more, behind the ledger's back: an entry for other offsets.
    iceberg.land(20, 23, iceberg.write(5, 8))
    found = judge(journal(tmp_path, range(20)), [(SPEC, at)])
    assert found == Judgement(20, {"delta": 20, "iceberg": 20}, quarantined=0, missing=0, duplicated=3)


def test_what_a_demo_left_that_was_killed_is_stopped_before_its_folder_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings({"LAKEBOUND_HOME": str(tmp_path), "LAKEBOUND_PIPELINES": str(EXAMPLES)})
    left, folder = leave_a_broker(tmp_path)

    def up(*_: object, **__: object) -> None:
        assert processes.members(left) == [] and not (folder / "process.json").exists()
        raise DemoFailedError(["enough"], tmp_path)

    monkeypatch.setattr(stack, "up", up)
    with pytest.raises(DemoFailedError, match="enough"):
        run_demo(settings, print)


def test_down_stops_what_a_demo_left_that_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEBOUND_HOME", str(tmp_path))
    left, _ = leave_a_broker(tmp_path)
    assert "down: an earlier demo was killed; what it left is stopped first" in lakebound("down").stderr
    assert processes.members(left) == []
    assert "earlier" not in lakebound("down").stderr


def test_down_ends_a_demo_that_runs_as_ctrl_c_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEBOUND_HOME", str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", STUB],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"LAKEBOUND_HOME": str(tmp_path), "LAKEBOUND_PIPELINES": str(EXAMPLES), "PATH": ""},
        cwd=tmp_path,
    ) as demo:
        assert demo.stdin is not None and demo.stdout is not None
        assert demo.stdout.readline() == "started\n"
        demo.stdin.write("go on\n")
        demo.stdin.flush()
        assert f"down: a demo runs (process {demo.pid}); it is stopped first" in lakebound("down").stderr
        assert demo.poll() is not None, "down waits for its end"
        assert demo.stdout.read().splitlines() == ["stopping", "stopped"]
    assert "a demo" not in lakebound("down").stderr


def leave_a_broker(home: Path) -> tuple[processes.ProcessRecord, Path]:
    """Start what a demo in this home leaves when it is killed; return its process and its folder."""
    own = replace(load_settings({"LAKEBOUND_HOME": str(home)}), home=home / "demo")
    folder = stack.broker_of(own).folder
    make_private_folder(folder)
    left = processes.start("Kafka broker", ["sleep", "600"], folder / "console.log")
    left.save(folder / "process.json")
    return left, folder


def test_the_last_line_names_the_worse_table() -> None:
    judged = Judgement(120_000, {"delta": 59_940, "iceberg": 119_880}, quarantined=120, missing=0, duplicated=0)
    seen = {
        "delta:sales.orders": VisibleFreshness(1, 310.4, 500, 702.6, 900, 59_940, 100, 100),
        "iceberg:sales.orders": VisibleFreshness(1, 420.2, 500, 650.0, 900, 59_940, 100, 100),
    }
    line = last_line(judged, seen)
    assert line == (
        "landed 120000 records: delta 59940, iceberg 119880, missing 0, duplicated 0, freshness p50 420 ms, p99 703 ms"
    )
    assert re.fullmatch(
        r"landed \d+ records: delta \d+, iceberg \d+, missing \d+, duplicated \d+, freshness p50 \d+ ms, p99 \d+ ms", line
    )


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_stops_what_was_started_and_a_second_one_does_not_disturb_that(first: signal.Signals, tmp_path: Path) -> None:
    environment = {"LAKEBOUND_HOME": str(tmp_path), "LAKEBOUND_PIPELINES": str(EXAMPLES), "PATH": ""}
    with subprocess.Popen(
        [sys.executable, "-c", STUB],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=tmp_path,
    ) as demo:
        assert demo.stdin is not None
        assert demo.stdout is not None
        assert demo.stdout.readline() == "started\n"
        demo.send_signal(first)
        assert demo.stdout.readline() == "stopping\n"
        demo.send_signal(signal.SIGTERM)
        demo.send_signal(signal.SIGINT)
        demo.stdin.write("\n")
        demo.stdin.flush()
        assert demo.stdout.readline() == "stopped\n"
        assert demo.wait(HANGS_SECONDS) != 0
