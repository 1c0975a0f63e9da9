"""What differs since the code changed: what is told, and what is not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebound.alerts.code_jumps import jumps
from lakebound.alerts.code_look import TOLD_SECONDS, code_findings
from lakebound.control.code_samples import (
    FIRST_SLICES,
    FULL_SLICE_RECORDS,
    LAST_SLICES,
    MOST_VALUES,
    OTHER_VALUES,
    CodeSamples,
    ColumnCounts,
    Slice,
    VersionSamples,
)

SINCE = 1_000_000.0


def part(read: int = 1000, nulls: int = 20, **counts: int) -> Slice:
    landed = read - counts.get("filtered", 0) - counts.get("quarantined", 0)
    body: dict[str, Any] = {"read": read, "landed": landed, "rows": landed, **counts}
    return Slice(until=SINCE, columns={"city": ColumnCounts(values=max(landed, nulls), nulls=nulls)}, **body)


def version(name: str, *parts: Slice, values: dict[str, int] | None = None, **more: Any) -> VersionSamples:
    found = VersionSamples(hash=name, since_ms=int(SINCE * 1000), **more)
    for one in parts:
        found = found.plus(one, {})
    return found.model_copy(update={"values": {"kind": values}}) if values else found


def told(before: VersionSamples, now: VersionSamples) -> list[str]:
    return [one.sentence for one in jumps(before, now)]


OLD = version("old", *(part(nulls=nulls, filtered=filtered) for nulls, filtered in ((10, 50), (25, 80), (15, 20), (20, 40))))


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (part(nulls=1000, filtered=40), ["column city is null: 100 % (before: 1.84 %)"]),
        (part(nulls=20, filtered=900, rows=100), ["records filtered: 90 % (before: 4.75 %)"]),
        (part(nulls=20, filtered=40, quarantined=10), ["records in quarantine: 1 % (before: 0 %)"]),
        (part(nulls=20, filtered=40, rows=1920), ["rows per record: 2 (before: 1)"]),
        (part(nulls=20, filtered=40, rows=480), ["rows per record: 0.5 (before: 1)"]),
        (part(nulls=20, filtered=40), []),
        (part(nulls=20, filtered=90), []),  # a little outside of what was seen
        (part(nulls=20, filtered=40, quarantined=4), []),  # too few to say
        (part(read=100, nulls=100), []),
    ],
)
def test_a_jump_is_told_with_both_figures(now: Slice, expected: list[str]) -> None:
    assert told(OLD, version("new", now)) == expected


@pytest.mark.parametrize(
    ("had", "seen", "expected"),
    [
        ({"a": 500, "b": 500}, {"a": 500, "c": 500}, ["column kind has values that it did not have: 50 % (before: 0 %)"] * 1),
        ({"a": 500, "b": 500}, {"a": 400, "b": 500, "c": 40}, []),
        ({"a": 500, "b": 500}, {"b": 500}, ["of the frequent values of column kind are there: 1 (before: 2)"]),
        ({"a": 995, "b": 5}, {"a": 500}, []),  # a rare one is missing by chance
        ({"a": 500, OTHER_VALUES: 500}, {"c": 500}, []),  # had many values
        ({str(one): 1 for one in range(MOST_VALUES)}, {"x": 500}, []),  # too few to know its values
    ],
)
def test_columns_with_few_values(had: dict[str, int], seen: dict[str, int], expected: list[str]) -> None:
    before, now = version("old", part(), part(), part(), values=had), version("new", part(), values=seen)
    found = told(before, now)
    assert found == expected or (len(found) == 2 and expected[0] in found)


def test_with_few_slices_only_a_large_difference_is_told() -> None:
    before = version("old", part(nulls=20))
    assert told(before, version("new", part(nulls=150))) == []
    assert told(before, version("new", part(nulls=400))) == ["column city is null: 40 % (before: 2 %)"]


@given(st.lists(st.integers(0, 1000), min_size=3, max_size=20), st.data())
def test_what_is_within_what_was_seen_is_no_jump(nulls: list[int], data: st.DataObject) -> None:
    before = version("old", *(part(nulls=one) for one in nulls))
    now = data.draw(st.integers(min(nulls), max(nulls)))
    assert told(before, version("new", part(nulls=now))) == []


@given(st.lists(st.integers(1, 1000), max_size=80))
def test_slices_are_bounded_and_lose_no_record_of_the_first_time(sizes: list[int]) -> None:
    found = version("new", *(part(read=one, nulls=0) for one in sizes))
    assert len(found.first) <= FIRST_SLICES and len(found.last) <= LAST_SLICES
    if not found.is_past_first:
        assert sum(one.read for one in found.first) == sum(sizes)
    assert all(one.read >= FULL_SLICE_RECORDS for one in found.slices[:-1])


def test_values_are_bounded_and_lose_no_count() -> None:
    found = VersionSamples(hash="a", since_ms=1)
    for round_ in range(5):
        found = found.plus(part(), {"kind": {f"{round_}-{one}": one + 1 for one in range(10)}})
    assert len(found.values["kind"]) == MOST_VALUES + 1
    assert sum(found.values["kind"].values()) == 5 * sum(range(1, 11))


class TestFindings:
    BAD = version("new", part(nulls=1000, filtered=40))

    def record(self, **more: Any) -> CodeSamples:
        return CodeSamples(table="delta:shop.orders", version="9", **{"before": OLD, "current": self.BAD, **more})

    def test_a_jump_is_a_finding_that_stays_after_the_first_time_and_ends_after_a_day(self) -> None:
        [found] = code_findings(self.record(), (), SINCE + 60)
        assert found.runbook == "bad-deploy" and "column city is null: 100 % (before: 1.84 %)" in found.what
        late = self.BAD.model_copy(update={"last": (part(),)})
        assert code_findings(self.record(current=late), (found,), SINCE + 7200) == (found,)
        assert code_findings(self.record(current=late), (found,), SINCE + TOLD_SECONDS) == ()

    def test_nothing_is_found_of_code_that_was_put_back_or_is_the_first(self) -> None:
        assert code_findings(self.record(current=self.BAD.model_copy(update={"is_known": True})), (), SINCE) == ()
        assert code_findings(self.record(before=None), (), SINCE) == ()

    def test_a_later_version_ends_what_was_found_of_the_one_before(self) -> None:
        [found] = code_findings(self.record(), (), SINCE + 60)
        newer = self.record().after("10", VersionSamples(hash="newer", since_ms=int(SINCE * 1000) + 1), part(1000, 1000), {})
        assert newer.before == self.BAD
        assert code_findings(newer, (found,), SINCE + 120) == ()
