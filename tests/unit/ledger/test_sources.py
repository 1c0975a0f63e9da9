"""Which code landed which offsets: remembered by entries, through restarts, rewinds and more versions than fit."""

from __future__ import annotations

import random

from lakebound.ledger.entry import Offsets, TopicOffsets, high_water_marks
from lakebound.ledger.source_ranges import landed_by
from lakebound.ledger.sources import MOST_OFFSETS, MOST_REMEMBERED, Source, SourceVersion, remembered

TOPIC = "orders"


def covered(ends: dict[int, int]) -> Offsets:
    return {TOPIC: TopicOffsets(topic_id="id", partitions={part: ((0, end),) for part, end in ends.items() if end})}


def opened(known: tuple[SourceVersion, ...], name: str, ends: dict[int, int], at: int = 1) -> tuple[SourceVersion, ...]:
    return remembered(known, Source(hash=name), high_water_marks(covered(ends)), at)


def said(versions: tuple[SourceVersion, ...], ends: dict[int, int]) -> dict[str | None, dict[int, tuple[tuple[int, int], ...]]]:
    return {
        version.hash if version else None: dict(offsets[TOPIC].partitions) if offsets else {}
        for version, offsets in landed_by(versions, covered(ends))
    }


def test_a_version_begins_where_the_table_stood_when_it_was_opened_and_a_restart_begins_none() -> None:
    first = opened((), "a", {}, at=10)
    again = opened(first, "a", {0: 5, 1: 7}, at=20)
    assert again == first
    second = opened(again, "b", {0: 5, 1: 7}, at=30)
    assert [(one.hash, one.since_ms) for one in second] == [("a", 10), ("b", 30)]
    assert said(second, {0: 9, 1: 7, 2: 3}) == {"a": {0: ((0, 5),), 1: ((0, 7),)}, "b": {0: ((5, 9),), 2: ((0, 3),)}}


def test_rows_of_before_are_of_no_known_code() -> None:
    versions = opened((), "a", {0: 5})
    assert said(versions, {0: 8}) == {None: {0: ((0, 5),)}, "a": {0: ((5, 8),)}}
    assert said((), {0: 8}) == {None: {0: ((0, 8),)}}
    assert opened((), "", {0: 5}) == ()


def test_a_version_that_landed_nothing_is_forgotten() -> None:
    versions = opened(opened(opened((), "a", {}), "bad", {0: 5}), "b", {0: 5})
    assert [one.hash for one in versions] == ["a", "b"]


def test_after_a_rewind_the_rows_are_those_of_who_lands_them_again() -> None:
    """Drawn sequences of landing, rewinds and deploys, against a plain list of who landed each offset."""
    draw = random.Random(1)
    rewinds = 0
    for _ in range(300):
        rows: dict[int, list[str]] = {0: [], 1: []}
        versions: tuple[SourceVersion, ...] = ()
        for name in [draw.choice("abc") for _ in range(draw.randint(1, 8))]:
            if draw.random() < 0.3:
                rewinds += 1
                rows = {part: made[: draw.randint(0, len(made))] for part, made in rows.items()}
            versions = opened(versions, name, {part: len(made) for part, made in rows.items()})
            for made in rows.values():
                made.extend([name] * draw.randrange(4))
        ends = {part: len(made) for part, made in rows.items()}
        found: dict[int, list[str | None]] = {0: [], 1: []}
        for version, offsets in landed_by(versions, covered(ends)):
            for part, intervals in (offsets[TOPIC].partitions if offsets else {}).items():
                for start, end in intervals:
                    assert len(found[part]) == start
                    found[part] += [version.hash if version else None] * (end - start)
        assert found == rows
    assert rewinds > 100


def test_what_is_remembered_is_bounded_and_the_newest_stays() -> None:
    versions: tuple[SourceVersion, ...] = ()
    for number in range(40):
        versions = opened(versions, f"v{number}", {0: number})
    assert [one.hash for one in versions] == [f"v{number}" for number in range(40 - MOST_REMEMBERED, 40)]
    wide = dict.fromkeys(range(MOST_OFFSETS + 1), 1)
    assert [one.hash for one in opened(opened(versions, "x", wide), "y", dict.fromkeys(wide, 2))] == ["y"]
