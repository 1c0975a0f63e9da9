"""Records that the driver doubts go through Spark's decoder compiled, and become what a query makes of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from tests.support.streams.stand_ins import ORDERS
from tests.support.tables.json_texts import DOUBTFUL, PLAIN, SCHEMA, mutations, spec_of, strange_values, texts

from lakebound.landing.direct_read import RecordColumns
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch import compiled_plan
from lakebound_spark.batch.compiled_plan import CompiledPlan
from lakebound_spark.batch.decode import PROBLEM, SKIPPED, Decoder, make_decoder
from lakebound_spark.batch.doubtful import SparkDecoding
from lakebound_spark.batch.transform import KAFKA_SCHEMA

pytestmark = pytest.mark.spark

IDS = {"orders": "id"}
YESTERDAY = date(2026, 11, 26)
STRANGE = random.Random(8).sample(strange_values(seed=8), 1_000)
VALUES: list[bytes | None] = [None, b"", *PLAIN, *DOUBTFUL, *mutations(seed=7, count=500), *STRANGE]


@pytest.fixture
def gone_through(monkeypatch: pytest.MonkeyPatch) -> list[date]:
    """The days on which was compiled what slices went through, one of each slice."""
    found, through = list[date](), CompiledPlan.rows_of
    monkeypatch.setattr(CompiledPlan, "rows_of", lambda plan, given: found.append(plan.day) or through(plan, given))
    return found


def decoder_of(spec: PipelineSpec) -> Decoder:
    return make_decoder(spec, IDS)


def records_of(values: list[bytes | None], first: int = 0) -> RecordColumns:
    count = len(values)
    offsets = [*range(first, first + count)]
    return RecordColumns(["orders"] * count, [0] * count, offsets, [1_767_225_600_123] * count, [b"key"] * count, values)


def slices(values: list[bytes | None]) -> Iterator[RecordColumns]:
    """The values in slices of one to 60."""
    dice, first = random.Random(3), 0
    while first < len(values):
        end = first + dice.randint(1, 60)
        yield records_of(values[first:end], first)
        first = end


def queried(session: SparkSession, decoder: Decoder, values: list[bytes | None]) -> tuple[dict[int, str], dict[int, Any]]:
    """What a query makes of values: the good rows by offset, and the reasons and errors of the bad ones."""
    rows = [(b"key", value, "orders", 0, offset, None, 0) for offset, value in enumerate(values)]
    found = decoder.decode(session.createDataFrame(rows, KAFKA_SCHEMA)).select("_kafka.offset", PROBLEM, "_parsed.*").toArrow()
    good = found.filter(pc.is_null(found[PROBLEM]))
    bad = found.filter(pc.is_valid(found[PROBLEM])).select(["offset", PROBLEM]).to_pylist()
    landed = dict(zip(good["offset"].to_pylist(), texts(good.drop_columns(["offset", PROBLEM])), strict=True))
    return landed, {row["offset"]: tuple(row[PROBLEM].split("\t", 1)) for row in bad if row[PROBLEM] != SKIPPED}


@pytest.mark.parametrize(
    ("value", "changes"),
    [
        ({"format": "json", "schema": SCHEMA}, {}),
        ({"format": "json", "schema": SCHEMA}, {"null_values": "skip"}),
        ({"format": "json", "schema": SCHEMA, "unknown_fields": "quarantine"}, {}),
        ({"format": "bytes"}, {}),
    ],
)
def test_slices_become_what_a_query_makes_of_them(
    session: SparkSession, gone_through: list[date], value: dict[str, Any], changes: dict[str, Any]
) -> None:
    spec = PipelineSpec.model_validate({**ORDERS, "value": value, **changes})
    decoder = decoder_of(spec)
    decode = SparkDecoding(decoder)
    landed, bad, count = dict[int, str](), dict[int, Any](), 0
    for records in slices(VALUES):
        decoded, count = decode(session, records), count + 1
        offsets = [records.offsets[position] for position in decoded.positions]
        landed |= dict(zip(offsets, texts(decoded.rows.drop_columns("_kafka")), strict=True))
        assert decoded.rows["_kafka"].combine_chunks().field("offset").to_pylist() == offsets
        for row in decoded.bad.to_pylist():
            assert (row["key"], row["value"]) == (b"key", VALUES[row["_kafka"]["offset"]])
            bad[row["_kafka"]["offset"]] = (row["reason"], row["error"])
    assert (landed, bad) == queried(session, decoder, VALUES)
    assert len(gone_through) == count, "not every slice went through what was compiled"


def test_another_session_or_day_and_what_raised_have_it_compiled_anew(
    session: SparkSession, gone_through: list[date], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, compile_it = list[str](), compiled_plan.compiled
    monkeypatch.setattr(
        "lakebound_spark.batch.kept_plan.compiled",
        lambda of, *rest: made.append(str(of._jsparkSession.sessionUUID())) or compile_it(of, *rest),
    )
    today = [YESTERDAY]
    monkeypatch.setattr(compiled_plan, "_today", lambda: today[0])
    decode, records, another = SparkDecoding(decoder_of(spec_of())), records_of([b"", PLAIN[0]]), session.newSession()

    def uuid(of: SparkSession) -> str:
        return str(of._jsparkSession.sessionUUID())

    for of in (session, session, another, another, session):
        decoded = decode(of, records)
        assert (decoded.positions, decoded.bad.num_rows) == ([1], 1)
    assert made == [uuid(session), uuid(another), uuid(session)]
    today[0] += timedelta(days=1)
    decode(session, records)
    assert gone_through == [YESTERDAY] * 5 + today and made[3:] == [uuid(session)]

    with monkeypatch.context() as patch:
        patch.setattr(pa.ipc, "open_stream", no_memory)
        with pytest.raises(MemoryError):
            decode(session, records)
    assert decode(session, records).positions == [1] and made[4:] == [uuid(session)]


def no_memory(*_: object) -> None:
    raise MemoryError


def test_where_it_cannot_be_compiled_each_slice_is_planned(
    session: SparkSession, gone_through: list[date], monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = list[int]()

    def raises(*_: object) -> None:
        tries.append(1)
        raise RuntimeError("a Spark of another version")

    monkeypatch.setattr("lakebound_spark.batch.kept_plan.compiled", raises)
    decode = SparkDecoding(decoder_of(spec_of()))
    for _ in range(3):
        decoded = decode(session, records_of([b"", PLAIN[0]]))
        assert (decoded.positions, decoded.bad.num_rows) == ([1], 1)
    assert gone_through == [] and len(tries) == 1
