"""A map is indexed in a query as Spark does it, in every clause, under aliases, and with any text as the key."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest

from lakebound.inspection.query_maps import with_map_values

TAGS = [{"colour": 1, "it's": 2}, {"colour": 3}, {}, None]


@pytest.fixture(scope="module")
def frames() -> dict[str, pl.LazyFrame]:
    tags = pa.array([None if one is None else list(one.items()) for one in TAGS], pa.map_(pa.string(), pa.int64()))
    frame = pl.from_arrow(pa.table({"id": [*range(len(TAGS))], "tags": tags}))
    assert isinstance(frame, pl.DataFrame)
    return {"shop.orders": frame.lazy(), "shop.others": pl.LazyFrame({"id": [0]})}


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("select id, tags['colour'] from shop.orders order by id", [(0, 1), (1, 3), (2, None), (3, None)]),
        ("select id from shop.orders where tags['colour'] > 1", [(1,)]),
        (
            "select o.tags [ 'colour' ] as c, count(*) as n from shop.orders o group by c order by c",
            [(1, 1), (3, 1), (None, 2)],
        ),
        ("select sum(tags['it''s']) as s from shop.orders", [(2,)]),
        ("select tags['none'] from shop.orders where id = 0", [(None,)]),
        ("select id from shop.others", [(0,)]),
    ],
)
def test_an_indexed_map_is_its_value(sql: str, rows: list[tuple[object, ...]], frames: dict[str, pl.LazyFrame]) -> None:
    rewritten, wider = with_map_values(sql, frames)
    assert pl.SQLContext(wider).execute(rewritten).collect().rows() == rows


def test_what_is_no_map_stays_as_it_is_written(frames: dict[str, pl.LazyFrame]) -> None:
    sql = "select 'tags[''colour'']' as a, id['x'] from shop.others"
    assert with_map_values(sql, frames)[0] == sql
