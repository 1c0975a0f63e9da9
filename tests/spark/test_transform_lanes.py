"""One function on the same records gives the same rows in every lane: whoever reads and decodes them, and whoever writes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.support.streams.long_form import LONG_FORM
from tests.support.streams.transform_functions import (
    FUNCTIONS,
    ORDERED,
    SHORT,
    by_python,
    encoded,
    exploded_with_empty,
    joined,
    records,
)
from tests.support.tables.transform_worlds import (
    LANES,
    Told,
    assert_alike,
    few_rows_by_jobs,
    in_order,
    pipeline,
    sent,
    told,
    world,
)
from tests.support.tables.value_lanes import LaneWorld

from lakebound_spark.batch import direct
from lakebound_spark.batch.transform import Transform

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("as_applications_write")]

RECORDS = 40
DOUBTFUL = (b'{"id": 7}', b"{", b"", None)
"""The driver leaves all of them to Spark, for which the first one is good."""
BACKLOGS = (exploded_with_empty, by_python)


@pytest.mark.parametrize("function", FUNCTIONS if LONG_FORM else SHORT, ids=lambda function: function.__name__)
def test_a_function_gives_the_same_rows_in_every_lane(session: SparkSession, tmp_path: Path, function: Transform) -> None:
    values = records(random.Random(function.__name__), RECORDS)
    found, counts = {}, {}
    for way in LANES:
        one = world(session, tmp_path / way, way, function)
        steps = one.land(sent(0, [*values]))
        assert ("direct_transform" in steps and "driver_lane" not in steps) is (way == "direct")
        found[way], counts[way] = told(one), one.counts
        one.close()
    assert_alike(found)
    if LONG_FORM:  # in the short form the backlogs below are, and each function's last slice in test_passed_columns.py
        assert_alike_by_jobs(session, tmp_path, function, values, found["direct"])
    if function in ORDERED:
        assert found["direct"].rows == found["driver"].rows
    assert len(set(counts.values())) == 1
    counted = counts["direct"]
    assert (counted.read, counted.quarantined, counted.landed) == (RECORDS, 0, len(found["direct"].rows))
    assert counted.filtered == RECORDS - counted.landed


def assert_alike_by_jobs(session: SparkSession, folder: Path, function: Transform, values: list[bytes], direct: Told) -> None:
    """Check that the driver lands the same where Spark computes by jobs."""
    with few_rows_by_jobs():
        one = world(session, folder / "jobs", "direct", function)
        assert "direct_transform" in one.land(sent(0, [*values]))
        by_jobs = told(one)
        one.close()
    assert (by_jobs.bad, by_jobs.entry) == (direct.bad, direct.entry)
    assert by_jobs.rows == direct.rows if function in ORDERED else in_order(by_jobs) == in_order(direct)


@pytest.mark.parametrize(
    "function", [encoded, joined, *BACKLOGS] if LONG_FORM else BACKLOGS, ids=lambda function: function.__name__
)
def test_a_backlog_that_is_read_beside_the_transform_gives_the_same_rows(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: Transform
) -> None:
    values, dice = [*records(random.Random(function.__name__), 2 * RECORDS), *DOUBTFUL], random.Random(2)
    dice.shuffle(values)
    collected = world(session, tmp_path / "driver", "driver", function)
    collected.land(sent(0, [*values]))
    monkeypatch.setattr(direct, "SLICE_RECORDS", 1)
    with few_rows_by_jobs():
        backlog = LaneWorld(session, tmp_path / "direct", pipeline(), "direct", function, has_transform=True, slices=5)
        steps = backlog.land(sent(0, [*values]))
    assert {"direct_read", "direct_transform"} <= steps and "driver_lane" not in steps
    found, expected = told(backlog), told(collected)
    assert (found.rows, found.bad, found.entry) == (expected.rows, expected.bad, expected.entry)
    for one in (collected, backlog):
        one.close()


def test_strange_records_become_the_same_in_each_lane(session: SparkSession, tmp_path: Path) -> None:
    values, found = records(random.Random(1), 5), {}
    for way in LANES:
        one = world(session, tmp_path / way, way, exploded_with_empty)
        one.land(sent(0, [*values]))
        steps = one.land(sent(len(values), [*DOUBTFUL, *values]))
        assert ({"direct_transform", "quarantine"} <= steps) is (way == "direct")
        found[way] = told(one)
        assert (one.counts.read, one.counts.quarantined) == (2 * len(values) + len(DOUBTFUL), len(DOUBTFUL) - 1)
        one.close()
    assert_alike(found)


def failing_at_once(frame: DataFrame) -> DataFrame:
    if frame.columns and not frame.isEmpty():
        raise ValueError("the function itself")
    return frame


def test_what_a_function_itself_raises_is_the_same_in_every_lane(session: SparkSession, tmp_path: Path) -> None:
    raised = {}
    for way in LANES:
        one = world(session, tmp_path / way, way, failing_at_once)
        before = told(one)
        with pytest.raises(ValueError, match="the function itself") as error:
            one.land(sent(0, [b'{"id": "1"}', b'{"id": "x"}']))
        raised[way] = error.type
        assert told(one) == before, "nothing is half done"
        one.close()
    assert len({*raised.values()}) == 1, raised
