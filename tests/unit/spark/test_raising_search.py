"""The search for records on which a transform raises: a sample comes first, each part is told, and no value is in a message."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, StructField, StructType

from lakebound.control.progress import SearchProgress
from lakebound.errors import TransformFailsError
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch import failing_records
from lakebound_spark.batch.failing_records import SAMPLED, RaisingRecords
from lakebound_spark.batch.raised import Raised, without_values

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


def test_each_part_that_was_tried_is_told_and_that_the_search_is_over() -> None:
    searched = Searched(lambda value: value % 50 == 0)
    searched.search(500).among(SESSION, rows(500))
    assert [one.tried for one in searched.told[:-1]] == [*range(1, len(searched.told))]
    assert {one.records for one in searched.told} == {500} and not any(one.is_over for one in searched.told[:-1])
    assert searched.told[-1].is_over and searched.told[-1].found == 10
    moments = [one.changed_at for one in searched.told]
    assert moments == sorted(moments) and len({one.since for one in searched.told}) == 1


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
