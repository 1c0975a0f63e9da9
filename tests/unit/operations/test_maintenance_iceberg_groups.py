"""Which files one commit of a compaction rewrites: all of them once, and no more than one beside a fast stream can."""

from __future__ import annotations

import pytest

from lakebound.operations.maintenance.iceberg.groups import FILES_PER_COMMIT, groups
from lakebound.operations.maintenance.steps import Compact
from lakebound.tables.iceberg.live_files import LiveFile

MIB = 1 << 20
MOST_INPUTS = 5_000


def step(**changes: object) -> Compact:
    body = {"table": "iceberg:shop.orders", "reason": "a test", "below_bytes": 96 * MIB, "target_file_bytes": 128 * MIB}
    return Compact.model_validate({**body, **changes})


def files(count: int, size: int, city: str | None = None) -> list[LiveFile]:
    partition = {"city": city} if city else {}
    return [LiveFile(f"/{city}-{number}.parquet", partition, 1, size, number) for number in range(count)]


@pytest.mark.parametrize(
    ("count", "size"),
    [(34_000, 4_000), (86_400, 4_000), (5_000, 4_000), (5_001, 4_000), (10_001, 26_000), (900, MIB), (300, 10 * MIB), (2, 1)],
)
def test_a_commit_takes_a_bounded_number_of_files_and_all_are_taken_once(count: int, size: int) -> None:
    given = files(count, size)
    made = list(groups(given, step()))
    assert all(len(group) <= FILES_PER_COMMIT and sum(map(len, group)) <= MOST_INPUTS for group in made)
    assert all(len(joined) > 1 for group in made for joined in group)
    assert [one for group in made for joined in group for one in joined] == given
    least = max(count * size // (128 * MIB), 1)
    assert len([joined for group in made for joined in group]) <= least + 1 + count // 2_500


def test_small_files_of_the_partition_alone_are_taken() -> None:
    given = [*files(3, 1, "a"), *files(3, 1, "b"), *files(2, 96 * MIB, "b")]
    assert list(groups(given, step(partition={"city": "b"}))) == [[files(3, 1, "b")]]
    for partition in ({"city": "c"}, {}):
        assert list(groups(given, step(partition=partition))) == []
    assert list(groups(files(1, 1), step())) == []
