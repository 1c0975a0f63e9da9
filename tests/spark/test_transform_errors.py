"""A record on which the transform raises goes to quarantine, alone, and the same in every lane; any other error is an error."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, NumberFormatException, PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.support.streams.long_form import LONG_FORM, only_in_long_form
from tests.support.tables.local_tables import TOPIC, TOPIC_ID
from tests.support.tables.transform_worlds import LANES, Told, assert_alike, few_rows_by_jobs, sent, told, world

from lakebound.errors import TransformFailsError
from lakebound.inspection.proof.offset_arrays import size
from lakebound.landing.rollup_recorder import Lane
from lakebound.landing.sampling import TopicSample
from lakebound.operations.release.orders import ReleaseOrders
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound_spark.backfill.quarantined import QuarantinedRecords, Released
from lakebound_spark.batch import failing_records
from lakebound_spark.batch.transform import Transform
from lakebound_spark.check import trial
from lakebound_spark.check.mistakes import RaisedOnRecordsError
from lakebound_spark.columns import explode
from lakebound_spark.landing import lander, parts
from lakebound_spark.landing.assembly import Assembly

OF_A_JOINED_TABLE = (NumberFormatException, Py4JJavaError)
"""The table is read in a thread of Spark's; what it raises there, PySpark does not always translate."""

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("as_applications_write")]

WAYS = ["direct", pytest.param("cluster", marks=only_in_long_form)]
GOOD = b'{"id": "%d", "n": %d, "tags": ["a", "b"]}'


def by_cast_and_division(frame: DataFrame) -> DataFrame:
    """The filter keeps a record from the division: it is no error, and must not become one in a part of the batch."""
    numbered = frame.withColumn("number", F.col("id").cast("int")).withColumn("share", F.lit(1) / F.col("n"))
    return explode(numbered.where("id <> 'filtered'").select("id", "number", "share", "tags", KAFKA_COLUMN), "tags", "tag")


def by_python(frame: DataFrame) -> DataFrame:
    @F.udf("int")
    def number(text: str) -> int:
        return int(text)

    return frame.select("id", number("id").alias("number"), KAFKA_COLUMN)


def by_pandas(frame: DataFrame) -> DataFrame:
    @F.pandas_udf("long")
    def number(texts: pd.Series) -> pd.Series:
        return texts.astype("int64")

    return frame.select("id", number("id").alias("number"), KAFKA_COLUMN)


def with_a_missing_module(frame: DataFrame) -> DataFrame:
    @F.udf("int")
    def number(text: str) -> int:
        if text == "x":
            import nowhere_to_be_found  # noqa: F401  # type: ignore[import-not-found]
        return 1

    return frame.withColumn("number", number("id"))


def with_a_bad_table(frame: DataFrame) -> DataFrame:
    """What the records are joined with raises, whatever the records are."""
    others = frame.sparkSession.createDataFrame([("y",)], "text STRING").select(F.col("text").cast("int").alias("n"))
    return frame.join(F.broadcast(others), "n", "left").select("id", KAFKA_COLUMN)


def with_a_missing_table(frame: DataFrame) -> DataFrame:
    if is_gone:
        frame.sparkSession.table("nowhere.to_be_found")
    return frame


is_gone = False


def landed_by(session: SparkSession, folder: Path, way: Lane, function: Transform, values: list[bytes | None]) -> Told:
    one = world(session, folder / way, way, function)
    one.land(sent(0, [GOOD % (number, 1) for number in range(3)]))
    steps = one.land(sent(3, values))
    assert "isolate" in steps
    assert (way == "direct") is ("driver_lane" not in steps and "cluster_lane" not in steps), "the driver needs nobody for it"
    found, counts = told(one), one.counts
    one.close()
    assert counts.read == counts.landed + counts.filtered + counts.quarantined == 3 + len(values)
    return found


@pytest.mark.parametrize(
    ("function", "bad", "errors"),
    [
        pytest.param(
            by_cast_and_division,
            [b'{"id": "x", "n": 1, "tags": ["a"]}', b'{"id": "4", "n": 0, "tags": ["a"]}'],
            ["SparkNumberFormatException: [CAST_INVALID_INPUT] The value 'x'", "SparkArithmeticException: [DIVIDE_BY_ZERO]"],
            id="sql",
        ),
        pytest.param(
            by_python,
            [b'{"id": "x"}'],
            ["ValueError: invalid literal for int() with base 10: 'x'"],
            id="python",
        ),
        pytest.param(
            by_pandas,
            [b'{"id": "x"}', b'{"id": "y"}'],
            ["ValueError: invalid literal", "ValueError: invalid literal"],
            id="pandas",
            marks=only_in_long_form,
        ),
    ],
)
def test_a_record_on_which_the_function_raises_goes_to_quarantine_alone(
    session: SparkSession, tmp_path: Path, function: Transform, bad: list[bytes], errors: list[str]
) -> None:
    others = [b'{"id": 7}', b"{", b'{"id": "filtered"}'] if function is by_cast_and_division else []
    values = [GOOD % (7, 1), bad[0], *others, GOOD % (8, 2), *bad[1:], GOOD % (9, 3)]
    found = {way: landed_by(session, tmp_path, way, function, [*values]) for way in LANES}
    assert_alike(found)
    if LONG_FORM or function is by_cast_and_division:  # that of Spark's own functions has parts that jobs share out
        with few_rows_by_jobs():
            assert landed_by(session, tmp_path / "jobs", "direct", function, [*values]) == found["direct"]
    quarantined = found["direct"].bad
    raised = {3 + values.index(value): error for value, error in zip(bad, errors, strict=True)}
    for offset, error in raised.items():
        [(reason, text, value)] = quarantined[offset]
        assert (reason, value) == ("transform", values[offset - 3])
        assert text.startswith(error) and "\n" not in text
    assert {*quarantined} - {*raised} == {3 + values.index(value) for value in others if value == b"{"}


@pytest.mark.parametrize("way", WAYS)
def test_a_batch_that_is_too_large_for_one_search_lands_in_pieces_and_can_be_ended_in_and_between_them(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Lane
) -> None:
    for module in (lander, failing_records):
        monkeypatch.setattr(module, "MOST_HELD", 3)
    one = world(session, tmp_path, way, by_cast_and_division)
    batch = sent(0, [GOOD % (number, number % 7) for number in range(11)])
    answers = iter([True, False])  # for the first piece, and for the first trial of its search
    one.land(batch, lambda: next(answers))
    assert (one.counts.read, next(answers, None)) == (0, None) and not told(one).bad
    target = one.targets[0]
    one.land(batch, lambda: TOPIC not in target.coverage or target.coverage[TOPIC].partitions[0] != ((0, 6),))
    assert [target.coverage[TOPIC].partitions[0] for target in one.targets] == [((0, 6),)] * len(one.targets)
    one.land(batch)
    found = told(one)
    assert sorted(found.bad) == [0, 7]
    assert (one.counts.read, one.counts.landed, one.counts.quarantined) == (11, 9, 2)
    assert all(sorted(rows) == [1, 2, 3, 4, 5, 6, 8, 9, 10] for rows in one.read().tables.values())
    one.close()


@only_in_long_form
def test_a_function_that_takes_no_record_any_more_ends_a_slow_topic_too(session: SparkSession, tmp_path: Path) -> None:
    """In the short form: ``test_skipped_tombstones_are_no_records_that_the_function_took``, by the same count."""
    one = world(session, tmp_path, "direct", by_python)
    bad, good = b'{"id": "x"}', GOOD % (1, 1)
    for first, values in ((0, [bad] * 8), (8, [good]), (9, [bad] * 5)):
        one.land(sent(first, [*values]))
    with pytest.raises(TransformFailsError, match="all 4 records of a batch, and on the 5 before it"):
        one.land(sent(14, [bad] * 4))
    assert {*one.read().bad} == {*range(14)} - {8}
    one.close()


def by_python_and_division(frame: DataFrame) -> DataFrame:
    return by_python(frame.where(F.col("n").isNull() | (F.lit(1) / F.col("n") > 0)))


def test_an_error_of_sql_is_known_after_one_of_python(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process in which PySpark has told of no error of SQL yet."""
    monkeypatch.delitem(logging.Logger.manager.loggerDict, "DataFrameQueryContextLogger", raising=False)
    one = world(session, tmp_path, "direct", by_python_and_division)
    one.land(sent(0, [GOOD % (1, 1), b'{"id": "x"}']))
    one.land(sent(2, [GOOD % (2, 1), GOOD % (3, 0)]))
    assert {*one.read().bad} == {1, 3}
    one.close()


@pytest.mark.parametrize("way", WAYS)
def test_skipped_tombstones_are_no_records_that_the_function_took(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Lane
) -> None:
    one = world(session, tmp_path, way, by_python, null_values="skip")
    one.land(sent(0, [b'{"id": "x"}', None, b'{"id": "x"}']))
    one.land(sent(3, [None]))
    # Each record costs several evaluations. How few are few by default, a test below says with nine.
    monkeypatch.setattr(failing_records, "FEW", 3)
    with pytest.raises(TransformFailsError, match="all 2 records of a batch, and on the 2 before it"):
        one.land(sent(4, [b'{"id": "x"}'] * 2))
    assert {*one.read().bad} == {0, 2}
    one.close()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("function", "value", "error"),
    [
        (by_cast_and_division, b'{"id": "x", "tags": ["a"]}', TransformFailsError),
        (with_a_missing_module, b'{"id": "x"}', PythonException),
        (with_a_bad_table, b'{"id": "1"}', OF_A_JOINED_TABLE),
        (with_a_missing_table, b'{"id": "1"}', AnalysisException),
    ],
    ids=["all", "module", "joined", "table"],
)
def test_an_error_that_no_record_is_to_blame_for_commits_nothing(
    session: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: Lane,
    function: Transform,
    value: bytes,
    error: type[Exception] | tuple[type[Exception], ...],
) -> None:
    one = world(session, tmp_path, way, function)
    before = [target.table.read_ledger().entry for target in one.targets]
    monkeypatch.setitem(globals(), "is_gone", True)
    with pytest.raises(error) as raised:
        one.land(sent(0, [value] * 9))
    if error is TransformFailsError:
        assert "raises an error on all 9 records" in str(raised.value) and "'x'" not in str(raised.value)
    if error is OF_A_JOINED_TABLE:
        assert "CAST_INVALID_INPUT" in str(raised.value)
    assert [target.table.read_ledger().entry for target in one.targets] == before
    assert not one.read().bad
    one.close()


def test_such_a_record_stays_in_quarantine_until_the_function_is_mended(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = world(session, tmp_path, "direct", by_python)
    values: list[bytes | None] = [GOOD % (1, 1), b'{"id": "x"}', GOOD % (2, 1)]
    one.land(sent(0, values))
    spec = one.spec.model_copy(update={"transform": "transforms.of_this_test.number"})
    orders = ReleaseOrders(spec=spec, places=one.at, app_id="release-1", freshness="available_now")
    wanted = {(TOPIC, TOPIC_ID, 0): np.array([1])}

    def released(function: Transform, *, write: bool) -> Released:
        monkeypatch.setattr(parts, "load_transform", lambda spec, references: function)
        batch = QuarantinedRecords(orders, session, [target.table for target in one.targets])
        found = batch.decode(wanted, [target.table for target in one.targets], write=write)
        batch.forget()
        return found

    still = released(by_python, write=False)
    assert (size(still.fits), still.verdicts) == (0, {"transform": Counter(stay=1)})
    mended = released(lambda frame: frame.select("id", F.expr("try_cast(id as int) number"), KAFKA_COLUMN), write=True)
    assert (size(mended.fits), mended.written.rows, mended.verdicts) == (1, 1, {"transform": Counter(fit=1)})

    sample = TopicSample(sent(0, values).records, {TOPIC: TOPIC_ID})
    monkeypatch.setattr(parts, "load_transform", lambda spec, references: by_python)
    rows, bad = trial.land_in_memory(Assembly(parts.plan_pipeline(session, spec), sample.topic_ids), sample)
    assert rows["id"].to_pylist() == ["1", "2"]
    assert (bad["reason"].to_pylist(), bad["value"].to_pylist()) == (["transform"], [values[1]])

    sample = TopicSample(sent(0, [b'{"id": "%d-x"}' % number for number in range(40)]).records, {TOPIC: TOPIC_ID})
    with pytest.raises(RaisedOnRecordsError, match=f"first: {TOPIC}/0/0: ValueError: .*'0-x'"):
        trial.land_in_memory(Assembly(parts.plan_pipeline(session, spec), sample.topic_ids), sample)
    one.close()
