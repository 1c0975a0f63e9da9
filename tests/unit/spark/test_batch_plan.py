from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from lakebound.errors import TableMismatchError
from lakebound.ledger.entry import Offsets, TopicOffsets, add
from lakebound.ledger.intervals import Interval
from lakebound.spec.limits import DriverLaneSpec
from lakebound_spark.batch.lane_choice import LaneChooser
from lakebound_spark.batch.row_writer import check_housed
from lakebound_spark.landing.trimming import group_by_missing, range_between


def offsets(partitions: dict[int, tuple[Interval, ...]]) -> Offsets:
    return {"orders": TopicOffsets(topic_id="id-1", partitions=partitions)}


@dataclass
class Holding:
    """A table as far as grouping looks at it; nothing was erased from it."""

    coverage: Offsets = field(default_factory=dict)

    def leave_out_erased(self, wanted: Offsets) -> None:
        """Nothing was erased."""


def test_a_batch_reads_from_the_last_position_and_a_new_partition_from_zero() -> None:
    found = range_between({"orders": {0: 100}}, {"orders": {0: 150, 1: 20, 2: 0}}, {"orders": "id-1"})
    assert found == offsets({0: ((100, 150),), 1: ((0, 20),)})


def test_a_batch_without_new_offsets_is_empty() -> None:
    assert range_between({"orders": {0: 100}}, {"orders": {0: 100}}, {"orders": "id-1"}) == {}


def test_tables_with_the_same_coverage_share_one_transform() -> None:
    wanted = offsets({0: ((100, 200),)})
    even = [Holding(offsets({0: ((0, 100),)})), Holding(offsets({0: ((0, 100),)}))]
    assert group_by_missing(even, wanted) == [(wanted, even)]  # type: ignore[arg-type]


def test_a_table_that_has_part_of_the_batch_gets_only_the_rest() -> None:
    wanted = offsets({0: ((100, 200),)})
    behind, ahead = Holding(offsets({0: ((0, 100),)})), Holding(offsets({0: ((0, 150),)}))
    groups = group_by_missing([behind, ahead], wanted)  # type: ignore[arg-type]
    assert groups == [(wanted, [behind]), (offsets({0: ((150, 200),)}), [ahead])]


def test_a_table_that_has_the_whole_batch_is_left_out() -> None:
    wanted = offsets({0: ((100, 200),)})
    assert group_by_missing([Holding(add(wanted, offsets({0: ((0, 100),)})))], wanted) == []  # type: ignore[list-item]


def test_the_first_batch_takes_the_cluster_lane_and_teaches_the_width_of_records() -> None:
    lanes = LaneChooser(DriverLaneSpec(max_rows=1000, max_bytes=100_000))
    assert lanes.choose(1) == "cluster"
    lanes.learn("cluster", records=10, value_bytes=1_000, rows=10, seconds=1.0)
    assert lanes.choose(1000) == "driver"
    assert lanes.choose(1001) == "cluster"


def test_wider_records_count_at_once_and_narrower_ones_slowly() -> None:
    lanes = LaneChooser(DriverLaneSpec(max_rows=10_000, max_bytes=100_000))
    lanes.learn("cluster", records=10, value_bytes=1_000, rows=10, seconds=1.0)
    lanes.learn("cluster", records=10, value_bytes=1_000_000, rows=10, seconds=1.0)
    assert lanes.choose(2) == "cluster"
    lanes.learn("cluster", records=10, value_bytes=1_000, rows=10, seconds=1.0)
    assert lanes.choose(2) == "cluster"
    lanes.learn("cluster", records=0, value_bytes=0, rows=0, seconds=1.0)
    assert lanes.bytes_per_record is not None and lanes.bytes_per_record > 50_000


def test_what_an_explode_makes_of_a_record_counts_in_rows_and_in_bytes() -> None:
    lanes = LaneChooser(DriverLaneSpec(max_rows=1000, max_bytes=1 << 40))
    lanes.learn("cluster", records=10, value_bytes=1_000, rows=200, seconds=1.0)
    assert (lanes.choose(50), lanes.choose(51)) == ("driver", "cluster")
    lanes = LaneChooser(DriverLaneSpec(max_rows=1 << 40, max_bytes=100_000))
    lanes.learn("cluster", records=10, value_bytes=1_000, rows=200, seconds=1.0)
    assert (lanes.choose(50), lanes.choose(51)) == ("driver", "cluster")


def test_a_filter_makes_no_batch_smaller_and_an_explode_is_forgotten_slowly() -> None:
    lanes = LaneChooser(DriverLaneSpec(max_rows=1000, max_bytes=1 << 40))
    lanes.learn("cluster", records=100, value_bytes=1_000, rows=1, seconds=1.0)
    assert lanes.choose(1001) == "cluster"
    lanes.learn("cluster", records=10, value_bytes=100, rows=1000, seconds=1.0)
    lanes.learn("cluster", records=10, value_bytes=100, rows=10, seconds=1.0)
    assert lanes.choose(100) == "cluster"
    for _ in range(30):
        lanes.learn("cluster", records=10, value_bytes=100, rows=10, seconds=1.0)
    assert lanes.choose(900) == "driver"


def test_a_column_that_a_table_lacks_is_dropped_only_where_it_is_left_out_on_purpose() -> None:
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("old", pa.int64())])
    check_housed(["id"], schema, "delta:orders", {})
    check_housed(["id", "note"], schema, "delta:orders", {"delta:orders": ["note"]})
    for left_out in ({}, {"iceberg:orders": ["note"]}, {"delta:orders": ["other"]}):
        with pytest.raises(TableMismatchError, match="delta:orders does not fit the pipeline: it has no column note any more"):
            check_housed(["id", "note"], schema, "delta:orders", left_out)
