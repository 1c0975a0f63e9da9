"""The search for records on which a transform raises: a sample comes first, each part is told, and no value is in a message."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, StructField, StructType

from lakebound.control.progress import SearchProgress
from lakebound.errors import TransformFailsError
from lakebound.ledger.entry import Offsets, TopicOffsets
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch import failing_records
from lakebound_spark.batch.direct import _refused_where_it_raises
from lakebound_spark.batch.failing_records import SAMPLED, RaisingRecords, SearchEndedError
from lakebound_spark.batch.raised import Raised, without_values
from lakebound_spark.batch.report import BatchReport
from lakebound_spark.landing import lander

SESSION: Any = None


def rows(count: int) -> pa.Table:
    places = [{"topic": "t", "partition": 0, "offset": 100 + at, "ordinal": 0} for at in range(count)]
    return pa.table({"n": pa.array(range(count), pa.int32()), "_kafka": places})


class Searched(RaisingRecords):
    """Raises on what ``is_bad`` says, without Spark."""

    def __init__(self, is_bad: Callable[[int], bool]) -> None:
        spec = PipelineSpec.model_validate(
            {
                "pipeline": "orders",
                "connection": {"bootstrap_servers": "nowhere:9092"},
                "topics": ["t"],
                "value": {"format": "json", "schema": "n INT"},
                "freshness": "1s",
                "transform": "transforms.orders.clean",
                "tables": [{"format": "delta", "name": "shop.orders"}],
            }
        )
        super().__init__(spec, lambda frame: frame, StructType([StructField("n", IntegerType())]))
        self._is_bad = is_bad
        self.tried = 0
        self.told = list[SearchProgress]()
        self.tell = self.told.append

    def wrong_with(self, session: Any, part: pa.Table) -> Raised | None:
        self.tried += 1
        bad = [value for value in part["n"].to_pylist() if self._is_bad(value)]
        return Raised("ValueError", f"ValueError: not a price: {bad[0]}, of 'Mrs Smith'") if bad else None


@pytest.fixture(autouse=True)
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("as_in_batches", "without_quotes"):
        monkeypatch.setattr(failing_records, name, lambda session: nullcontext())


def test_a_transform_that_takes_none_of_a_sample_is_refused_before_the_search() -> None:
    searched = Searched(lambda value: True)
    with pytest.raises(TransformFailsError) as raised:
        searched.search(4096).among(SESSION, rows(4096))
    assert searched.tried == SAMPLED + 1  # one of no records
    for part in ("ValueError", "not a price: …", "t/0/100", "quarantine-flood", "16 records"):
        assert part in str(raised.value)
    assert "Smith" not in str(raised.value)


def test_one_record_of_the_sample_that_is_taken_is_enough_to_search_all() -> None:
    searched = Searched(lambda value: value in (0, 7))
    search = searched.search(400)
    assert search.among(SESSION, rows(400))["offset"].to_pylist() == [100, 107]
    assert searched.tried < 60


def test_few_records_and_those_of_a_release_are_not_sampled() -> None:
    for count, most in ((8, None), (200, 1000)):
        assert Searched(lambda value: True).search(count, most).among(SESSION, rows(count)).num_rows == count


def test_the_begin_of_a_search_each_part_and_its_end_are_told() -> None:
    searched = Searched(lambda value: value % 50 == 0)
    searched.search(500).among(SESSION, rows(500))
    assert [one.tried for one in searched.told[:-1]] == [*range(len(searched.told) - 1)]
    assert {one.records for one in searched.told} == {500} and not any(one.is_over for one in searched.told[:-1])
    assert searched.told[-1].is_over and searched.told[-1].found == 10
    moments = [one.changed_at for one in searched.told]
    assert moments == sorted(moments) and len({one.since for one in searched.told}) == 1


def test_the_search_is_told_before_its_first_part_is_tried() -> None:
    searched = Searched(lambda value: True)
    told_at_first = list[int]()
    try_part = searched.wrong_with

    def wrong_with(session: Any, part: pa.Table) -> Raised | None:
        told_at_first.append(len(searched.told))
        return try_part(session, part)

    searched.wrong_with = wrong_with  # type: ignore[method-assign]
    searched.search(8).among(SESSION, rows(8))
    assert told_at_first[0] == 1 and searched.told[-1].is_over


def test_a_search_with_a_limit_ends_in_time_and_knows_the_first_error_with_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def is_bad(value: int) -> bool:
        nonlocal now
        now += 0.01  # a value; an evaluation of 200 takes 2 s
        return value % 2 == 1

    monkeypatch.setattr(failing_records.time, "monotonic", lambda: now)
    search = Searched(is_bad).search(200, limit_seconds=5)
    with pytest.raises(
        TransformFailsError, match=r"raises an error on \d+ or more of 200 records \(the search ended"
    ) as raised:
        search.among(SESSION, rows(200))
    assert 5 <= now < 8
    assert search.first is not None
    assert search.first.raised.text == "ValueError: not a price: 1, of 'Mrs Smith'"
    assert "Smith" not in str(raised.value)


def test_the_time_of_a_search_says_nothing_of_a_transform_that_takes_all_records(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter(range(1000))
    monkeypatch.setattr(failing_records.time, "monotonic", lambda: next(moments))
    assert not Searched(lambda value: False).search(200, limit_seconds=0).among(SESSION, rows(200)).num_rows


@pytest.mark.parametrize(
    ("text", "record", "shown"),
    [
        (
            "ValueError: invalid literal for int() with base 10: 'abc'",
            {"n": "abc"},
            "ValueError: invalid literal for int() with base …: …",
        ),
        ("KeyError: no mail of Jane.Doe@example.org", {"mail": "jane.doe@example.org"}, "KeyError: no mail of …"),
        ("X: deep value here", {"a": [{"b": "deep value"}]}, "X: … here"),
        ("X: 12.50 on 2026-01-02", {}, "X: … on …"),
    ],
)
def test_an_errors_text_is_shown_without_values(text: str, record: dict[str, Any], shown: str) -> None:
    assert without_values(text, record) == shown


def test_a_search_that_nobody_wants_any_more_ends_before_its_next_trial() -> None:
    searched = Searched(lambda value: value % 50 == 0)
    searched.goes_on = lambda: searched.tried < 30
    with pytest.raises(SearchEndedError):
        searched.search(500).among(SESSION, rows(500))
    assert searched.tried == 30
    assert searched.told[-1].is_over, "status does not go on telling it"


def test_the_driver_leaves_no_batch_to_spark_whose_search_was_given_up() -> None:
    with pytest.raises(SearchEndedError), _refused_where_it_raises("the transform"):
        raise SearchEndedError


def test_a_batch_whose_search_is_given_up_ends_early_and_commits_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    searched = Searched(lambda value: value % 50 == 0)
    wanted: Offsets = {"t": TopicOffsets(topic_id="id", partitions={0: [(100, 600)]})}
    monkeypatch.setattr(lander, "group_by_missing", lambda targets, offsets: [(offsets, targets)] * 2)
    committed = list[str]()

    def land_group(work: Any, report: BatchReport, verify: Any) -> None:
        searched.search(500).among(SESSION, rows(500))
        committed.append("group")

    landing: Any = object.__new__(lander.BatchLander)
    landing._targets, landing._raising, landing._decoder, landing._land_group = [], searched, None, land_group
    records: Any = SimpleNamespace(among=lambda offsets: None)
    report = landing.land(records, 7, wanted, lambda: None, lambda: searched.tried < 30)
    assert report.ended_early and not committed and report.counts.read == 0
    whole = landing.land(records, 8, wanted, lambda: None)
    assert not whole.ended_early and committed == ["group", "group"]
