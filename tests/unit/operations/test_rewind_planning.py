"""The decisions of a rewind on facts alone: which version, what it costs, and what is refused. Pure."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from tests.support.tables.local_tables import PIPELINE, SCHEMA, TOPIC, TOPIC_ID, offsets
from tests.support.worlds.rewinds import REWIND, entry

from lakebound.ledger.entry import Offsets, TopicOffsets
from lakebound.ledger.sources import Source, SourceVersion
from lakebound.ledger.topics import TopicFacts
from lakebound.operations.recovery.landing_rate import START_SECONDS
from lakebound.operations.recovery.plan import PlanRefusedError, RepairPlan
from lakebound.operations.recovery.rewind.plan import RewindFacts, RewoundTable, plan_rewind
from lakebound.spec.times import BadMomentError, in_utc, parse_past
from lakebound.tables.table import PastVersion, TableVersion

NOW_MS = 1_795_183_500_000  # 2026-11-20T14:05:00Z


# Times


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-20T14:05", NOW_MS),
        ("2026-11-20 14:05:00", NOW_MS),
        ("2026-11-20T14:05Z", NOW_MS),
        ("2026-11-20T15:05+01:00", NOW_MS),
        ("2026-11-20T14:04:59.250", NOW_MS - 750),
        ("2026-11-20", NOW_MS - (14 * 60 + 5) * 60_000),
        ("10m ago", NOW_MS - 600_000),
        (" 90 s ago ", NOW_MS - 90_000),
        ("2d ago", NOW_MS - 2 * 86_400_000),
    ],
)
def test_a_time_is_utc_unless_it_names_a_zone(text: str, expected: int) -> None:
    assert parse_past(text, NOW_MS) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "14:05", "10 ago", "2026-13-01", "10w ago"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(BadMomentError, match="is not a valid time; give a time such as"):
        parse_past(text, NOW_MS)


def test_a_time_that_has_not_come_is_refused() -> None:
    with pytest.raises(BadMomentError, match=r"is in the future \(it is now 2026-11-20 14:05:00 UTC\)"):
        parse_past("2026-11-20T14:05:00.001", NOW_MS)
    assert in_utc(NOW_MS + 7) == "2026-11-20 14:05:00.007 UTC"


# What it costs


def table(
    name: str = "delta:shop.orders", was: Offsets | None = None, now: Offsets | None = None, **changes: object
) -> RewoundTable:
    was = offsets(0, 10) if was is None else was
    made = RewoundTable(
        table=name,
        role="target",
        coverage=offsets(0, 30) if now is None else now,
        rows=30,
        schema=SCHEMA,
        target=TableVersion("7", NOW_MS, entry()),
        past=PastVersion(entry(coverage=was), 10, SCHEMA),
        kept_until_ms=NOW_MS + 86_400_000,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def kafka(earliest: int = 0, topic_id: str = TOPIC_ID) -> dict[str, TopicFacts]:
    partitions = range(3)
    return {TOPIC: TopicFacts(topic_id, dict.fromkeys(partitions, earliest), dict.fromkeys(partitions, 100))}


def facts(*tables: RewoundTable, **changes: object) -> RewindFacts:
    return replace(RewindFacts(targets=tables or (table(),), quarantine=None, topics=kafka()), **changes)  # type: ignore[arg-type]


def plan(found: RewindFacts) -> RepairPlan:
    return plan_rewind(PIPELINE, "rewind", found)


def quarantine(**changes: object) -> RewoundTable:
    return table("delta:quarantine.orders", {}, offsets(0, 20), role="quarantine", **changes)


def test_the_hash_stands_on_versions_coverage_and_topics_alone() -> None:
    found = facts()
    moved = facts(
        table(now=offsets(0, 90), rows=900, kept_until_ms=NOW_MS * 2), records_per_second=5.0, topics=kafka(earliest=3)
    )
    assert plan(moved).hash == plan(found).hash
    others = (
        facts(table(target=TableVersion("8", NOW_MS, entry()))),
        facts(table(was=offsets(0, 11))),
        facts(table(), table("iceberg:shop.orders")),
        facts(quarantine=quarantine()),
        facts(table(was={}, now={}), topics=kafka(topic_id="another")),
    )
    assert len({plan(found).hash, *(plan(other).hash for other in others)}) == 6
    assert plan_rewind(PIPELINE, "undo_rewind", found, undoes=REWIND).hash != plan(found).hash


def test_the_stream_reads_again_from_the_lowest_mark_to_the_highest() -> None:
    found = facts(
        table(was=offsets(0, 12), now=offsets(0, 30)),
        table("iceberg:shop.orders", was=offsets(0, 10), now=offsets(0, 28)),
        records_per_second=4.0,
    )
    made = plan(found)
    assert made.replays_records == 20 and made.estimate_seconds == START_SECONDS + 5
    assert f"{TOPIC} partition 0: [10, 30) is read again; Kafka has it" in made.notes


def test_a_table_that_stays_is_read_past_not_again() -> None:
    made = plan(facts(kept={"iceberg:shop.orders": offsets(0, 35)}))
    assert made.replays_records == 25
    assert any("iceberg:shop.orders" in note and "not landed in them again" in note for note in made.notes)
    behind = plan(facts(table(was=offsets(0, 10), now=offsets(0, 12)), kept={"iceberg:shop.orders": offsets(0, 4)}))
    assert behind.replays_records == 8


def test_without_a_rate_there_is_no_estimate() -> None:
    assert plan(facts()).estimate_seconds is None


def test_a_partition_that_the_version_had_not_seen_gets_a_mark() -> None:
    later = {TOPIC: TopicOffsets(topic_id=TOPIC_ID, partitions={0: ((0, 30),), 1: ((5, 5), (8, 20))})}
    found = table(now=later)
    assert found.reset_coverage[TOPIC].partitions == {0: ((0, 10),), 1: ((5, 5),)}
    assert plan(facts(found)).replays_records == 20 + 15
    assert quarantine().reset_coverage == {}


def test_of_several_lost_ranges_each_is_named_once() -> None:
    both = {TOPIC: TopicOffsets(topic_id=TOPIC_ID, partitions={0: ((0, 30),), 2: ((0, 30),)})}
    was = {TOPIC: TopicOffsets(topic_id=TOPIC_ID, partitions={0: ((0, 10),), 2: ((0, 29),)})}
    found = facts(table(was=was, now=both), table("iceberg:shop.orders", was=offsets(0, 12), now=both), topics=kafka(25))
    with pytest.raises(PlanRefusedError, match=rf"40 of .*: {TOPIC} partition 0 \[10, 25\), {TOPIC} partition 2 \[0, 25\)"):
        plan(found)


REFUSED = {
    "files gone": (facts(table(past=PastVersion(entry(), 10, SCHEMA, ("a.parquet",)))), "1 of its data files are gone"),
    "files of the quarantine gone": (
        facts(quarantine=quarantine(past=PastVersion(entry(), 1, SCHEMA, ("b.parquet",)))),
        r"version 7 of delta:quarantine.orders .* \(such as b.parquet\)",
    ),
    "no entry": (facts(table(past=PastVersion(None, 10, SCHEMA))), "has no ledger entry"),
    "topic no longer read": (facts(topics={}), "no longer reads that topic"),
    "topic recreated since": (facts(topics=kafka(topic_id="another")), "topic id topic-id-1, and the broker has another"),
    "recreated, and landed anew": (
        facts(
            table(now={TOPIC: TopicOffsets(topic_id="another", partitions={0: ((0, 30),)})}), topics=kafka(topic_id="another")
        ),
        "topic id topic-id-1, and the broker has another",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_lose_something_is_refused(case: str) -> None:
    found, reason = REFUSED[case]
    with pytest.raises(PlanRefusedError, match=reason):
        plan(found)


def test_a_topic_that_the_pipeline_no_longer_reads_may_stay_as_it_is() -> None:
    former = {"old": TopicOffsets(topic_id="gone", partitions={0: ((0, 5),)})}
    found = facts(table(was={**offsets(0, 10), **former}, now={**offsets(0, 30), **former}))
    assert plan(found).replays_records == 20


def test_other_columns_and_rows_that_come_back_are_told() -> None:
    narrower = pa.schema(list(SCHEMA)[1:])
    made = plan(facts(table(past=PastVersion(entry(coverage=offsets(0, 40)), 50, narrower))))
    assert made.removes_rows == {"delta:shop.orders": 0} and made.replays_records == 0
    assert any(note.startswith("delta:shop.orders will have 20 rows more") for note in made.notes)
    assert any("the columns of that version" in note for note in made.notes)


def test_what_was_released_since_is_told() -> None:
    made = plan(facts(table(past=PastVersion(entry(coverage=offsets(0, 10), released=2), 10, SCHEMA), released=5)))
    assert made.notes[0].startswith("3 records that were released from quarantine are removed from delta:shop.orders")
    assert f"`lakebound quarantine {PIPELINE} --replay` lands those" in made.notes[0]
    undone = plan(facts(table(past=PastVersion(entry(coverage=offsets(0, 10), released=2), 10, SCHEMA))))
    assert not any("released" in note for note in (*plan(facts()).notes, *undone.notes))


def test_the_coverage_of_former_incarnations_goes_with_the_reset() -> None:
    former = {TOPIC: (TopicOffsets(topic_id="gone", partitions={0: ((0, 5),)}),)}
    past = PastVersion(entry(coverage=offsets(0, 10), former=former), 10, SCHEMA)
    (step,) = (step for step in plan(facts(table(past=past))).steps if step.table)
    assert step.detail["former"][TOPIC][0]["topic_id"] == "gone"


def test_code_that_would_make_the_same_rows_again_is_told() -> None:
    made_by = (SourceVersion(hash="a", since_ms=1), SourceVersion(hash="b", since_ms=2, first_offsets={TOPIC: {0: 7}}))
    past = PastVersion(entry(coverage=offsets(0, 10), sources=made_by[:1]), 10, SCHEMA)
    rewound = table(past=past, sources=made_by)
    told = plan(facts(rewound, source=Source(hash="b"))).notes[0]
    assert "source b" in told and f"`lakebound control {PIPELINE} hold`" in told
    for other in (Source(hash="a"), Source(hash="c"), Source()):
        assert not any("hold" in note for note in plan(facts(rewound, source=other)).notes)
    ahead = table(past=PastVersion(entry(coverage=offsets(0, 40)), 40, SCHEMA), sources=made_by)
    assert not any("hold" in note for note in plan(facts(ahead, source=Source(hash="b"))).notes)
    again = SourceVersion(hash="c", since_ms=3, first_offsets={TOPIC: {0: 20}})
    idle = SourceVersion(hash="d", since_ms=4, first_offsets={TOPIC: {0: 30}})
    rewound_further = table(past=past, sources=(*made_by, again, idle))
    told = plan(facts(rewound_further, source=Source(hash="b"))).notes[0]
    assert "source b" in told and "hold" in told, "the wrong code was put back, and is on disk once more"
    for other in (Source(hash="a"), Source(hash="d")):
        assert not any("hold" in note for note in plan(facts(rewound_further, source=other)).notes), "none of these rows"
    (step,) = (step for step in plan(facts(rewound)).steps if step.table)
    assert [one["hash"] for one in step.detail["sources"]] == ["a"], "the reset names the code of the rows that are left"
