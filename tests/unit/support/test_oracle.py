"""The oracle finds what it is there to find."""

from __future__ import annotations

import ast
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests import oracle as oracle_module
from tests.oracle import Judgement, judge_quarantine, judge_table, quarantine_rows, read_delta, table_rows
from tests.support.kafka import journal as journal_module
from tests.support.kafka import producing as producing_module
from tests.support.kafka.journal import Acknowledged, Journal, row_hash, row_hashes, value_hash

TOPIC = "t"
KAFKA = pa.struct([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("ordinal", pa.int32())])


def row(offset: int, content: str, ordinal: int = 0) -> dict[str, object]:
    return {"body": content, "_kafka": {"topic": TOPIC, "partition": 0, "offset": offset, "ordinal": ordinal}}


def landed(*rows: dict[str, object]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=pa.schema([("body", pa.string()), ("_kafka", KAFKA)]))


@pytest.fixture
def journal() -> Journal:
    """Two records of one row, one that explodes into two, one bad, one filtered."""
    written = Journal()
    bodies = {0: ["a"], 1: ["b"], 2: ["c", "d"]}
    for offset, contents in bodies.items():
        hashes = row_hashes([{"body": content} for content in contents])
        written.write([Acknowledged((TOPIC, 0, offset), value_hash(b"v"), "table", hashes)])
    written.write([Acknowledged((TOPIC, 0, 3), value_hash(b"bad"), "quarantine", ())])
    written.write([Acknowledged((TOPIC, 0, 4), value_hash(b"dropped"), "nothing", ())])
    return written


RIGHT = (row(0, "a"), row(1, "b"), row(2, "c"), row(2, "d", 1))


def judged(journal: Journal, *rows: dict[str, object]) -> Judgement:
    return judge_table(journal, "delta:t", table_rows(landed(*rows)))


def test_what_is_right_is_clean(journal: Journal) -> None:
    assert judged(journal, *RIGHT).is_clean


def test_each_kind_of_wrong_is_found_where_it_is(journal: Journal) -> None:
    assert judged(journal, *RIGHT[1:]).missing == ((TOPIC, 0, 0, 0),)
    assert judged(journal, *RIGHT[:-1]).missing == ((TOPIC, 0, 2, 1),)
    assert judged(journal, *RIGHT, row(1, "b")).duplicated == ((TOPIC, 0, 1, 0),)
    assert judged(journal, row(0, "x"), *RIGHT[1:]).altered == ((TOPIC, 0, 0, 0),)
    for offset in (3, 4, 9):
        assert judged(journal, *RIGHT, row(offset, "x")).unexpected == ((TOPIC, 0, offset, 0),)


def test_quarantine_is_judged_by_its_bytes(journal: Journal) -> None:
    def quarantine(*values: bytes) -> Judgement:
        rows = [{"value": value, "_kafka": row(3, "")["_kafka"]} for value in values]
        table = pa.Table.from_pylist(rows, schema=pa.schema([("value", pa.binary()), ("_kafka", KAFKA)]))
        return judge_quarantine(journal, "quarantine", quarantine_rows(table))

    assert quarantine(b"bad").is_clean
    assert quarantine().missing == quarantine(b"bad", b"bad").duplicated == quarantine(b"BAD").altered == ((TOPIC, 0, 3, 0),)


def test_missing_delta_table_is_empty_and_a_real_one_is_read(journal: Journal, tmp_path) -> None:  # type: ignore[no-untyped-def]
    assert read_delta(tmp_path / "nothing").num_rows == 0
    write_deltalake(str(tmp_path / "table"), landed(*RIGHT))
    assert judge_table(journal, "delta:t", table_rows(read_delta(tmp_path / "table"))).is_clean


def test_the_order_of_columns_does_not_matter_and_their_content_does() -> None:
    assert row_hash({"a": 1, "b": None}) == row_hash({"b": None, "a": 1, "_kafka": {}})
    assert row_hash({"a": 1}) != row_hash({"a": "1"})


def test_the_same_place_twice_is_refused(journal: Journal) -> None:
    with pytest.raises(AssertionError, match="twice"):
        journal.write([Acknowledged((TOPIC, 0, 0), "", "table", ())])


def test_records_that_the_broker_compacted_away_are_not_expected(journal: Journal) -> None:
    journal.keep_only(TOPIC, {(TOPIC, 0, offset) for offset in (1, 2, 3, 4)})
    assert judged(journal, *RIGHT[1:]).is_clean


@pytest.mark.parametrize("module", [journal_module, oracle_module, producing_module])
def test_the_judge_imports_nothing_of_what_it_judges(module) -> None:  # type: ignore[no-untyped-def]
    nodes = list(ast.walk(ast.parse(Path(module.__file__).read_text())))
    plain = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    names = plain | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    assert "confluent_kafka" in names or "hashlib" in names, "the imports were not found"
    assert not [name for name in names if name.partition(".")[0] in ("lakebound", "lakebound_spark", "lakebound_airflow")]
