"""What a store does not take is the same, whether Spark looks at the rows or the driver."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from lakebound.spec.to_stores import ToStoreSpec
from lakebound_spark.batch.landable import make_check
from lakebound_spark.batch.store_bounds import store_bounds

pytestmark = pytest.mark.spark

POSTGRES = {"host": "db", "database": "shop", "username": "lake", "password": {"env": "LAKEBOUND_SECRET_X"}}
ROWS = ToStoreSpec.model_validate({"name": "cards", "key": "card", "postgres": POSTGRES})
COUNTERS = ToStoreSpec.model_validate(
    {
        "name": "velocity",
        "key": "card",
        "redis": {"host": "cache"},
        "counters": {"time": "paid_at", "windows": {"1m": "5s"}, "sums": ["amount"]},
    }
)
COLUMNS = (
    "card string, paid_at timestamp, amount bigint, note struct<texts: array<string>, more: map<string, string>>, "
    "_kafka struct<topic: string, topic_id: string, partition: int, offset: bigint, timestamp: timestamp, ordinal: int>"
)
GOOD = ("'a'", "timestamp '2026-01-01'", "1000000000000", "named_struct('texts', array('x', null), 'more', map('k', 'v'))")


@pytest.mark.parametrize(
    ("position", "value", "told"),
    [
        (0, "'a'", None),
        (0, "cast(null as string)", "card is null, or longer"),
        (0, "repeat('é', 257)", "card is null, or longer"),
        (0, "repeat('é', 256)", None),
        (0, "concat('a', char(0))", "card has the character U+0000"),
        (1, "cast(null as timestamp)", "paid_at is null"),
        (2, "1000000000001", "amount is larger"),
        (2, "-9223372036854775808", "amount is larger"),
        (2, "cast(null as bigint)", None),
        (3, "named_struct('texts', array('x', char(0)), 'more', map('k', 'v'))", "note has the character U+0000"),
        (3, "named_struct('texts', array('x'), 'more', map('k', char(0)))", "note has the character U+0000"),
        (3, "null", None),
    ],
)
def test_a_row_that_a_store_does_not_take_is_found_in_every_lane(
    session: SparkSession, position: int, value: str, told: str | None
) -> None:
    kafka = "named_struct('topic', 't', 'topic_id', 'i', 'partition', 0, 'offset', 0L, 'timestamp', null, 'ordinal', 0)"
    values = ", ".join([*(value if number == position else good for number, good in enumerate(GOOD)), kafka])
    output = session.sql(f"SELECT * FROM VALUES ({values}) AS given(card, paid_at, amount, note, _kafka)").to(
        session.createDataFrame([], COLUMNS).schema
    )
    rows = output.toArrow()
    bounds = [bound for one in (ROWS, COUNTERS) for bound in store_bounds(one, rows.schema)]
    check = make_check(output.schema, [], has_transform=False, bounds=bounds)

    problem = output.select(check.problem(output).alias("problem")).first()

    assert problem is not None
    assert check.holds(rows) == (told is None)
    assert (problem["problem"] is None) == (told is None)
    assert told is None or told in problem["problem"]
