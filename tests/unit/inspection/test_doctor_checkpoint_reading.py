"""Reading checkpoints and tables from disk, and the command: ``lakebound doctor --checkpoint``."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from tests.support.streams.command_line import answer, lakebound, settings
from tests.support.waiting import HANGS_SECONDS
from tests.support.worlds.foreign_checkpoints import OTHER, QUERY, Foreign, commit, files, offsets, table
from tests.support.worlds.recorded_streams import recording

from lakebound.inspection.doctor.foreign import delta_history
from lakebound.inspection.doctor.foreign import reading as foreign_reading
from lakebound.inspection.doctor.foreign.doctor import examine_checkpoint
from lakebound.inspection.doctor.foreign.reading import BadTableNameError, NotACheckpointError, read_foreign
from lakebound.inspection.doctor.foreign.table_facts import ForeignHistory
from lakebound.settings import Settings

__all__ = ["settings"]


def write(folder: Path, found: dict[str, bytes]) -> Path:
    """Write a checkpoint."""
    for path, content in found.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def delta_table(folder: Path, epochs: int, query: str = QUERY) -> Path:
    """Make a Delta table with the ``txn`` of a streaming query."""
    for epoch in range(epochs):
        properties = CommitProperties(app_transactions=[Transaction(query, epoch)])
        write_deltalake(str(folder), pa.table({"n": [epoch]}), mode="append", commit_properties=properties)
    return folder


def iceberg_table(folder: Path, name: str = "v11.metadata.json", *, is_zipped: bool = False) -> Path:
    """Write the newest metadata file of a recorded Iceberg table, beside an older one and a leftover."""
    content = json.dumps(recording("iceberg").moments[-1].log[0]).encode()
    write(folder / "metadata", {name: gzip.compress(content) if is_zipped else content, "v2.metadata.json": b"{}"})
    write(folder / "metadata", {"version-hint.text": b"2", "99999999-aaaa-4bbb-8ccc-dddddddddddd.metadata.json": b"{"})
    return folder


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return every file below a folder."""
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.rglob("*") if path.is_file()}


def test_a_delta_table_tells_the_epoch_of_the_query(tmp_path: Path) -> None:
    place = delta_table(tmp_path / "lake", 6)
    checkpoint = write(tmp_path / "checkpoint", files(5, 5))
    facts = read_foreign(f"file://{checkpoint}", [f"delta:{place}"])
    assert facts.tables[0].epochs == {QUERY: 5}
    assert not facts.is_moving
    assert examine_checkpoint(str(checkpoint), [f"delta:{place}"])[0].verdict == "healthy"


def test_the_epoch_outlives_the_commits_that_named_it(tmp_path: Path) -> None:
    place = delta_table(tmp_path / "lake", 6)
    DeltaTable(str(place)).create_checkpoint()
    for log in (place / "_delta_log").glob("0000000000000000000[0-4].json"):
        log.unlink()
    checkpoint = write(tmp_path / "checkpoint", files(5, 5))
    facts = read_foreign(str(checkpoint), [f"delta:{place}"])
    assert facts.tables[0].epochs == {QUERY: 5}
    other = write(tmp_path / "other", {**files(0, -1), **Foreign().rewritten(metadata=b'{"id":"%s"}' % OTHER.encode()).files})
    assert read_foreign(str(other), [f"delta:{place}"]).tables[0].epochs == {QUERY: 5}


@pytest.mark.parametrize("name", ["v11.metadata.json", "00011-99999999-aaaa-4bbb-8ccc-dddddddddddd.metadata.json"])
@pytest.mark.parametrize("is_zipped", [False, True])
def test_an_iceberg_table_is_read_from_its_newest_metadata(tmp_path: Path, name: str, is_zipped: bool) -> None:
    r = recording("iceberg")
    name = name.replace(".metadata", ".gz.metadata") if is_zipped else name
    place = iceberg_table(tmp_path / "lake", name, is_zipped=is_zipped)
    checkpoint = write(tmp_path / "checkpoint", r.moments[-1].files)
    for location in (place, place / "metadata" / name):
        facts = read_foreign(str(checkpoint), [f"iceberg:{location}"])
        assert facts.tables[0].epochs == {r.query: 9}
        diagnosis, mending = examine_checkpoint(str(checkpoint), [f"iceberg:file://{location}"])
        assert (diagnosis.verdict, mending) == ("healthy", None)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_table_that_is_not_there_has_no_epochs(tmp_path: Path, kind: str) -> None:
    checkpoint = write(tmp_path / "checkpoint", files(0, -1))
    diagnosis, _ = examine_checkpoint(str(checkpoint), [f"{kind}:{tmp_path / 'nowhere'}"])
    assert diagnosis.verdict == "starting"


def test_a_table_that_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    write(tmp_path / "lake" / "metadata", {"v1.metadata.json": b"{"})
    checkpoint = write(tmp_path / "checkpoint", files(5, 5))
    diagnosis, _ = examine_checkpoint(str(checkpoint), [f"iceberg:{tmp_path / 'lake'}"])
    assert "table-unreadable" in {finding.rule for finding in diagnosis.findings}


def test_names_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    checkpoint = write(tmp_path / "checkpoint", files(0, 0))
    for name in ("lake", "hudi:/lake", "delta:", "delta:s3://bucket/lake"):
        with pytest.raises(BadTableNameError, match="write delta:FOLDER"):
            read_foreign(str(checkpoint), [name])
    for place in (str(tmp_path / "nowhere"), "s3a://bucket/checkpoint"):
        with pytest.raises(NotACheckpointError):
            read_foreign(place, ["delta:/lake"])


@pytest.mark.parametrize(("moves", "is_moving"), [(1, False), (10**6, True)])
def test_a_running_query_is_read_again_until_it_holds_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moves: int, is_moving: bool
) -> None:
    """While the table is read, batches end: facts of different moments would look like a table that is ahead."""
    checkpoint = write(tmp_path / "checkpoint", files(3, 3))
    newest = 3

    def read_table(name: str, kind: str, place: Path, query_id: str | None) -> ForeignHistory:
        nonlocal newest
        if newest - 3 < moves:
            newest += 1
            write(checkpoint, {f"offsets/{newest}": offsets(newest), f"commits/{newest}": commit()})
        return table(newest)

    monkeypatch.setattr(foreign_reading, "_history", read_table)
    diagnosis, _ = examine_checkpoint(str(checkpoint), ["delta:/lake"])
    assert ("still-moving" in {finding.rule for finding in diagnosis.findings}) == is_moving
    if not is_moving:
        assert diagnosis.numbers["table_highest_epoch"] == diagnosis.numbers["offsets_newest_batch"] == 4


def test_the_doctor_writes_nothing(tmp_path: Path, settings: Settings) -> None:
    place = delta_table(tmp_path / "lake", 6)
    write(tmp_path / "checkpoint", Foreign().without("metadata").files)
    before = contents(tmp_path)
    lakebound("doctor", "--checkpoint", str(tmp_path / "checkpoint"), "--table", f"delta:{place}", code=1)
    assert contents(tmp_path) == before


def test_the_command_prints_a_script_that_makes_the_files(tmp_path: Path, settings: Settings) -> None:
    place = delta_table(tmp_path / "lake", 6)
    checkpoint = write(tmp_path / "checkpoint", Foreign().without("metadata").files)
    said = answer("doctor", "--checkpoint", str(checkpoint), "--table", f"delta:{place}", code=1)
    assert said["verdict"] == "needs_person"
    assert [finding["rule"] for finding in said["findings"]] == ["metadata-missing"]
    subprocess.run(
        ["sh", "-ec", said["mending"]["script"]], env={"NEW": str(tmp_path / "new")}, check=True, timeout=HANGS_SECONDS
    )
    written = {path: content.encode("latin-1") for path, content in said["mending"]["files_latin1"].items()}
    assert foreign_reading.read_files(tmp_path / "new") == written
    assert answer("doctor", "--checkpoint", str(tmp_path / "new"), "--table", f"delta:{place}")["verdict"] == "healthy"
    shown = lakebound("doctor", "--checkpoint", str(checkpoint), "--table", f"delta:{place}", code=1).stdout
    assert "needs person" in shown
    assert "metadata-missing" in shown
    assert "runbook: foreign-checkpoint" in shown
    assert said["mending"]["script"] in shown


@pytest.mark.parametrize("new", [None, "there"])
def test_the_script_writes_nothing_where_it_cannot_make_its_folder(tmp_path: Path, settings: Settings, new: str | None) -> None:
    """Whoever runs it may stand in the damaged checkpoint."""
    place = delta_table(tmp_path / "lake", 6)
    checkpoint = write(tmp_path / "checkpoint", Foreign().without("metadata").files)
    (tmp_path / "there").mkdir()
    before = contents(tmp_path)
    script = answer("doctor", "--checkpoint", str(checkpoint), "--table", f"delta:{place}", code=1)["mending"]["script"]
    environment = {} if new is None else {"NEW": str(tmp_path / new)}
    done = subprocess.run(
        ["sh", "-c", script], env=environment, cwd=checkpoint, check=False, timeout=HANGS_SECONDS, capture_output=True
    )
    assert done.returncode != 0 and contents(tmp_path) == before


def test_the_command_says_what_it_needs(tmp_path: Path, settings: Settings) -> None:
    lakebound("doctor", code=2)
    lakebound("doctor", "--checkpoint", str(tmp_path), code=2)
    lakebound("doctor", "orders", "--table", "delta:/lake", code=2)
    lakebound("doctor", "orders", "--checkpoint", str(tmp_path), code=2)
    lakebound("doctor", "--checkpoint", str(tmp_path / "nowhere"), "--table", "delta:/lake", code=1)


@pytest.mark.parametrize("other", ["a text", 7, None, [], [{"mode": "Overwrite"}], {"mode": ["Overwrite"]}, {"version": {}}])
@pytest.mark.parametrize("operation", ["RESTORE", "DELETE", "WRITE", "STREAMING UPDATE", None, ["WRITE"]])
def test_whatever_a_writer_says_of_itself_is_read(operation: Any, other: Any) -> None:
    info = {"commitInfo": {"operation": operation, "operationParameters": other, "operationMetrics": other, "timestamp": other}}
    commit = json.dumps({"txn": {"appId": "query", "version": 3}}) + "\n" + json.dumps(info, separators=(",", ":"))
    found = delta_history.history_of("delta:/lake/main", iter([(4, commit.replace('{"txn": ', '{"txn":'))]))
    assert found.epochs == {"query": 3}
    assert len(found.commits) == (operation == "STREAMING UPDATE")
