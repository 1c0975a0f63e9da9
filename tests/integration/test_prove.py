"""The proof against a real broker and real tables: it holds where it should, and names exactly what was planted."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from deltalake import CommitProperties, DeltaTable
from tests.oracle import readable_places
from tests.support.kafka.makers import TopicMaker
from tests.support.tables import local_tables
from tests.support.tables.foreign_hands import forget_entries
from tests.support.tables.landed import BAD, DELTA, DROPPED, EXPLODED, GOOD, ICEBERG, Landed, send
from tests.support.waiting import HANGS_SECONDS, wait_until
from typer.testing import CliRunner

from lakebound.cli import app
from lakebound.errors import UnknownTableError
from lakebound.inspection.proof.result import Proof, TableProof
from lakebound.ledger.entry import Entry, encode, new_commit_id
from lakebound.local.broker import Broker
from lakebound.spec.table import TableSpec
from lakebound.tables.delta.table import DeltaLakeTable
from lakebound.tables.table import Table

pytestmark = pytest.mark.integration


@pytest.fixture
def lands(broker: Broker, tmp_path: Path) -> Callable[..., Landed]:
    """Makes pipelines."""
    return lambda *topics, tables=(DELTA, ICEBERG): Landed(broker, local_tables.places(tmp_path), topics, tables)


@pytest.fixture
def plain(broker: Broker, topic: TopicMaker) -> str:
    """A topic of one partition with 40 good records."""
    name = topic("plain", partitions=1)
    send(broker, name, [GOOD] * 40)
    return name


def send_in_transactions(broker: Broker, topic: str, count: int, records: int) -> None:
    """Produce transactions to partition 0; every second one is committed, the others are aborted."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic, "log_level": 0})
    producer.init_transactions(30)
    for number in range(count):
        producer.begin_transaction()
        for _ in range(records):
            producer.produce(topic, GOOD, partition=0)
        assert producer.flush(30) == 0
        if number % 2:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)


def of(proof: Proof, table: TableSpec) -> TableProof:
    """Return the part of one table."""
    return next(found for found in proof.tables if found.table == table.id)


def test_all_that_never_was_readable_or_gives_no_row_is_no_loss(
    broker: Broker, topic: TopicMaker, lands: Callable[..., Landed]
) -> None:
    transactional, mixed = topic("transactional", partitions=1), topic("mixed", partitions=2)
    send_in_transactions(broker, transactional, 4, records=5)
    send(broker, mixed, [EXPLODED, GOOD, BAD, DROPPED] + [DROPPED] * 4 + [BAD] * 4 + [GOOD] * 3)
    landed = lands(transactional, mixed)
    assert landed.end(transactional) == 24
    for start in range(0, 24, 8):
        landed.land(transactional, 0, start, start + 8)
    for start, end in ((0, 4), (4, 8), (8, 12), (12, 13)):
        landed.land(mixed, 0, start, end)

    proof = landed.prove()
    assert proof.ok, proof.model_dump_json(indent=1)
    for table in (DELTA, ICEBERG):
        found = of(proof, table)
        assert (found.records, found.rows, found.filtered, found.quarantined, found.lag) == (13, 15, 5, 5, 2)
        assert found.source == "entry" and found.high_water_marks == {transactional: {0: 24}, mixed: {0: 13}}
    assert landed.prove(deep=False).ok
    assert [found.table for found in landed.prove(table="delta:raw.records").tables] == ["delta:raw.records"]
    with pytest.raises(UnknownTableError, match=r"iceberg:raw\.records"):
        landed.prove(table="raw.records")


def test_what_kafka_compacts_or_deletes_after_it_landed_is_no_loss(
    broker: Broker, topic: TopicMaker, lands: Callable[..., Landed], plain: str
) -> None:
    config = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
    compacted = topic("compacted", partitions=1, config=config)
    send(broker, compacted, [GOOD] * 100, keys=10)
    landed = lands(compacted, plain)
    landed.land(compacted, 0, 0, 50)
    landed.land(compacted, 0, 50, 100)
    landed.land(plain, 0, 0, 20)
    landed.land(plain, 0, 20, 40)

    def is_compacted() -> bool:
        # The active segment is never compacted: a record opens a new one.
        send(broker, compacted, [GOOD], keys=1)
        return len([place for place in readable_places(broker.bootstrap_servers, compacted) if place[2] < 100]) < 100

    wait_until(is_compacted, 90, "the broker's log compaction")
    client = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for deleted in client.delete_records([TopicPartition(plain, 0, 30)]).values():
        deleted.result(HANGS_SECONDS)

    proof = landed.prove()
    assert proof.ok, proof.model_dump_json(indent=1)
    assert of(proof, DELTA).records == 140
    assert any(f"no longer has {plain}/0 [0, 30)" in note for note in of(proof, DELTA).notes)


@pytest.mark.parametrize("table", [DELTA, ICEBERG], ids=lambda table: table.format)
class TestPlanted:
    """Each fault alone, in one of the two tables; the other stays proved."""

    def test_a_doubled_row(self, plain: str, lands: Callable[..., Landed], table: TableSpec) -> None:
        landed = self._landed(plain, lands)
        victim = self._table(landed, table)
        landed.plant(victim, landed.rows(plain, 0, [(7, 0), (8, 0), (31, 0)]))
        found = self._only_fault(landed.prove(), table)
        assert found.duplicated.ranges == {plain: {0: ((7, 9), (31, 32))}}
        assert (found.duplicated.count, found.missing.count, found.overlaps.count, found.outside.count) == (3, 0, 0, 0)
        assert landed.prove(deep=False).ok  # The entries alone cannot know.

    def test_a_missing_range(self, plain: str, lands: Callable[..., Landed], table: TableSpec) -> None:
        landed = lands(plain)
        for start in range(0, 40, 20):
            for own in landed.targets:
                kept = [o for o in range(start, start + 20) if own.spec != table or o not in (22, 23, 29)]
                where = landed.range(plain, 0, start, start + 20)
                landed.commit(own, plain, 0, where, [(o, 0) for o in kept], read=20, landed=20, rows=20)
        found = self._only_fault(landed.prove(), table)
        assert found.missing.ranges == {plain: {0: ((22, 24), (29, 30))}}
        assert (found.missing.count, found.duplicated.count, found.gaps.count, found.outside.count) == (3, 0, 0, 0)

    def test_an_overlap(self, plain: str, lands: Callable[..., Landed], table: TableSpec) -> None:
        landed = self._landed(plain, lands)
        again = landed.rows(plain, 0, [(offset, 0) for offset in range(15, 25)])
        landed.plant(self._table(landed, table), again, landed.range(plain, 0, 15, 25))
        for deep in (False, True):
            found = self._only_fault(landed.prove(deep=deep), table)
            assert found.overlaps.ranges == found.duplicated.ranges == {plain: {0: ((15, 25),)}}
            assert (found.duplicated.count, found.missing.count, found.surplus.count) == (10, 0, 0)

    def test_a_row_outside_the_coverage(self, plain: str, lands: Callable[..., Landed], table: TableSpec) -> None:
        landed = self._landed(plain, lands, end=30)
        landed.plant(self._table(landed, table), landed.rows(plain, 0, [(35, 0)]))
        found = self._only_fault(landed.prove(), table)
        assert found.outside.ranges == {plain: {0: ((35, 36),)}}
        assert (found.outside.count, found.duplicated.count, found.missing.count, found.lag) == (1, 0, 0, 10)

    def test_a_ledger_that_is_lost(self, plain: str, lands: Callable[..., Landed], table: TableSpec) -> None:
        landed = self._landed(plain, lands)
        forget_entries(table, landed.places)
        found = self._only_fault(landed.prove(), table)
        assert found.source == "statistics" and "no ledger entry" in found.problems[0]
        assert (found.records, found.missing.count, found.duplicated.count) == (40, 0, 0)

    def _landed(self, plain: str, lands: Callable[..., Landed], end: int = 40) -> Landed:
        landed = lands(plain)
        for start in range(0, end, 10):
            landed.land(plain, 0, start, start + 10)
        assert landed.prove().ok
        return landed

    def _table(self, landed: Landed, table: TableSpec) -> Table:
        return next(found for found in landed.targets if found.spec == table)

    def _only_fault(self, proof: Proof, table: TableSpec) -> TableProof:
        assert not proof.ok
        assert [found.table for found in proof.tables if not found.ok] == [table.id], proof.model_dump_json(indent=1)
        return of(proof, table)


def test_a_topic_that_was_recreated_is_named(broker: Broker, plain: str, lands: Callable[..., Landed]) -> None:
    landed = lands(plain, tables=(DELTA,))
    landed.land(plain, 0, 0, 40)
    landed.ids[plain] = "another"
    client = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    client.delete_topics([plain])[plain].result(HANGS_SECONDS)
    wait_until(lambda: "is not on the broker" in str(landed.prove().tables[0].problems), 30, "the topic's end")
    assert of(landed.prove(), DELTA).records == 40


def test_the_command_names_the_fault_and_ends_with_a_sentence(
    plain: str, lands: Callable[..., Landed], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    landed = lands(plain)
    landed.land(plain, 0, 0, 40)
    settings = {"HOME": landed.places.home, "WAREHOUSE": landed.places.root.path, "PIPELINES": tmp_path / "pipelines"}
    for name, path in settings.items():
        monkeypatch.setenv(f"LAKEBOUND_{name}", str(path))
    file = tmp_path / "pipelines" / "records.yaml"
    file.parent.mkdir()
    file.write_text(yaml.safe_dump(landed.spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)))
    run = partial(CliRunner().invoke, app, catch_exceptions=False)

    proved = run(["prove", "records", "--deep"])
    assert (proved.exit_code, proved.stdout.splitlines()[-1]) == (0, landed.prove().sentence)
    landed.plant(landed.targets[0], landed.rows(plain, 0, [(5, 0)]))
    refuted = run(["prove", "records", "--deep"])
    assert refuted.exit_code == 1
    assert f"delta:raw.records: doubled rows: 1: {plain}/0 [5, 6)" in refuted.stdout
    body = json.loads(run(["prove", "records", "--deep", "--table", "delta:raw.records", "--json"]).stdout)
    assert (body["ok"], body["missing"], body["duplicated"], len(body["tables"])) == (False, 0, 1, 1)
    assert run(["prove", "records"]).exit_code == 0


def test_a_stream_that_lands_on_meanwhile_is_neither_outside_nor_missing(
    plain: str, lands: Callable[..., Landed], monkeypatch: pytest.MonkeyPatch
) -> None:
    landed = lands(plain)
    landed.land(plain, 0, 0, 20)
    before_each_scan(monkeypatch, lambda: landed.land(plain, 0, 20, 40))
    proof = landed.prove()
    assert proof.ok, proof.model_dump_json(indent=1)
    assert [found.records for found in proof.tables] == [20, 20, 0]


def test_a_rewind_meanwhile_is_read_again(plain: str, lands: Callable[..., Landed], monkeypatch: pytest.MonkeyPatch) -> None:
    landed = lands(plain, tables=(DELTA,))
    landed.land(plain, 0, 0, 20)
    target = landed.targets[0]
    version = int(target.read_ledger().version)
    landed.land(plain, 0, 20, 40)

    def rewind() -> None:
        coverage = landed.range(plain, 0, 0, 20)
        reset = Entry(kind="reset", pipeline="records", epoch=1, commit=new_commit_id(), coverage=coverage)
        properties = CommitProperties(custom_metadata={"userMetadata": encode(reset)})
        DeltaTable(str(landed.places.delta_path(DELTA))).restore(version, commit_properties=properties)

    before_each_scan(monkeypatch, rewind)
    proof = landed.prove()
    assert proof.ok, proof.model_dump_json(indent=1)
    assert (of(proof, DELTA).records, of(proof, DELTA).lag) == (20, 20)


def test_a_rewind_between_the_readings_of_two_tables_is_read_again(
    broker: Broker, topic: TopicMaker, lands: Callable[..., Landed], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table was read before it, and its quarantine after it: the bad record would be missing."""
    name = topic("bad", partitions=1)
    send(broker, name, [*[GOOD] * 25, BAD, *[GOOD] * 14])
    landed = lands(name, tables=(DELTA,))
    landed.land(name, 0, 0, 20)
    before = {table.spec.id: table.read_ledger() for table in landed.opened}
    landed.land(name, 0, 20, 40)

    def rewind() -> None:
        for table in landed.opened:
            view = before[table.spec.id]
            reset = Entry(kind="reset", pipeline="records", epoch=1, commit=new_commit_id(), coverage=view.coverage)
            table.read_ledger()
            table.restore(view.version, reset)

    before_each_scan(monkeypatch, lambda: None, rewind)
    proof = landed.prove()
    assert proof.ok, proof.model_dump_json(indent=1)
    assert (of(proof, DELTA).records, of(proof, DELTA).lag) == (20, 20)


def before_each_scan(monkeypatch: pytest.MonkeyPatch, *happen: Callable[[], None]) -> None:
    """Have something happen once before each of the first readings of rows, after all ledgers were read."""
    left = [*happen]
    scan = DeltaLakeTable.scan_kafka

    def scan_later(table: DeltaLakeTable) -> pa.Table:
        if left:
            left.pop(0)()
        return scan(table)

    monkeypatch.setattr(DeltaLakeTable, "scan_kafka", scan_later)
