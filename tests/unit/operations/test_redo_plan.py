"""Which offsets a redo means, and why it leaves the others alone: against sets of single offsets."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebound.errors import LakeboundError, OffsetBeyondEndError, TopicRecreatedError
from lakebound.ledger.entry import Entry, Offsets, TopicOffsets
from lakebound.ledger.intervals import merge
from lakebound.ledger.sources import SourceVersion
from lakebound.ledger.topics import TopicFacts
from lakebound.operations.recovery.landing_rate import START_SECONDS
from lakebound.operations.redo.estimates import with_estimates
from lakebound.operations.redo.held_rows import by_partition, copies_of, rows_among
from lakebound.operations.redo.made_by import made_by
from lakebound.operations.redo.plan import NotRedoableError, RedoPlan, check_redoable, make_plan
from lakebound.operations.redo.versions import UnknownSourceError, find_source, landed_by_source, sources_of
from lakebound.operations.replay.chunks import chunks
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.table import KAFKA_TYPE, CommittedEntry

TOPIC, ID = "orders", "id-1"
Place = tuple[int, int]

intervals = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 12)).map(lambda pair: (pair[0], sum(pair))), max_size=5)
ranges = st.dictionaries(st.integers(0, 2), intervals.map(merge).filter(bool), max_size=3).map(
    lambda partitions: {TOPIC: TopicOffsets(topic_id=ID, partitions=partitions)} if partitions else {}
)


def offsets(*pieces: tuple[int, int], partition: int = 0, topic_id: str = ID) -> Offsets:
    return {TOPIC: TopicOffsets(topic_id=topic_id, partitions={partition: merge(pieces)})}


def members(found: Offsets) -> set[Place]:
    partitions = found[TOPIC].partitions if TOPIC in found else {}
    return {(p, offset) for p, pieces in partitions.items() for start, end in pieces for offset in range(start, end)}


def kafka(earliest: int = 0, latest: int = 1000) -> dict[str, TopicFacts]:
    return {TOPIC: TopicFacts(ID, dict.fromkeys(range(3), earliest), dict.fromkeys(range(3), latest))}


def entry(coverage: Offsets, *versions: tuple[str, int]) -> Entry:
    sources = tuple(
        SourceVersion(hash=name, since_ms=number, first_offsets={TOPIC: {0: first}})
        for number, (name, first) in enumerate(versions)
    )
    return Entry(kind="land", pipeline="orders", epoch=1, commit="c", coverage=coverage, sources=sources)


def pipeline(**fields: object) -> PipelineSpec:
    body = {
        "pipeline": "orders",
        "topics": [TOPIC],
        "connection": {"bootstrap_servers": "127.0.0.1:1"},
        "value": {"format": "bytes"},
        "freshness": "1s",
        "tables": [{"format": "delta", "name": "lake.orders"}],
    }
    return PipelineSpec.model_validate({name: value for name, value in (body | fields).items() if value is not None})


class TestOffsets:
    @given(ranges, st.lists(ranges, min_size=1, max_size=3), ranges, st.integers(0, 40))
    def test_each_offset_of_the_range_has_one_fate(
        self, asked: Offsets, coverages: list[Offsets], erased: Offsets, earliest: int
    ) -> None:
        by_decision = {(TOPIC, ID, p): pieces for p, pieces in erased[TOPIC].partitions.items()} if erased else {}
        plan = make_plan("orders", asked, {f"t{n}": held for n, held in enumerate(coverages)}, kafka(earliest), by_decision)
        held = [members(coverage) for coverage in coverages]
        marks = {p: min(max((o + 1 for q, o in one if q == p), default=0) for one in held) for p in range(3)}
        expected: dict[str, set[Place]] = {name: set() for name in ("left_to_stream", "uncovered", "erased", "gone", "redone")}
        for place in members(asked):
            fates = {
                "left_to_stream": place[1] >= marks[place[0]],
                "uncovered": not any(place in one for one in held),
                "erased": place in members(erased),
                "gone": place[1] < earliest,
                "redone": True,
            }
            expected[next(name for name, is_so in fates.items() if is_so)].add(place)
        assert {name: members(getattr(plan, name)) for name in expected} == expected
        assert [members(share.replaces) for share in plan.tables] == [expected["redone"] & one for one in held]

    def test_a_topic_that_was_made_anew_and_a_kafka_that_ends_before_are_refused(self) -> None:
        with pytest.raises(TopicRecreatedError):
            make_plan("orders", offsets((0, 5)), {"t": offsets((0, 9), topic_id="id-0")}, kafka(), {})
        with pytest.raises(OffsetBeyondEndError):
            make_plan("orders", offsets((0, 9)), {"t": offsets((0, 9))}, kafka(latest=7), {})

    def test_a_topic_that_the_pipeline_no_longer_reads_is_named_and_left_alone(self) -> None:
        both = {**offsets((0, 9)), "former": TopicOffsets(topic_id="id-2", partitions={0: ((0, 4),)})}
        plan = make_plan("orders", both, {"t": both}, kafka(), {})
        assert (plan.redone, plan.dropped) == (offsets((0, 9)), {"former": both["former"]})

    def test_the_lines_name_what_cannot_be_redone(self) -> None:
        plan = make_plan("orders", offsets((0, 90)), {"t": offsets((0, 50))}, kafka(earliest=20), {(TOPIC, ID, 0): ((30, 31),)})
        lines = [line for line in plan.lines() if " offsets: " in line]
        assert [line.rpartition(": ")[2] for line in lines] == ["orders/0 [0, 20)", "orders/0 [30, 31)", "orders/0 [50, 90)"]

    def test_a_plan_is_the_same_after_json(self) -> None:
        plan = make_plan("orders", offsets((0, 90)), {"t": offsets((0, 50))}, kafka(earliest=20), {})
        assert RedoPlan.model_validate_json(plan.model_dump_json()) == plan


class TestVersions:
    @given(st.lists(st.tuples(st.sampled_from(["aa1", "aa2", "b"]), st.integers(0, 30)), min_size=1, max_size=6), intervals)
    def test_a_version_landed_what_lies_between_its_beginnings_and_the_next(
        self, versions: list[tuple[str, int]], covered: list[tuple[int, int]]
    ) -> None:
        firsts = sorted(first for _, first in versions)
        versions = [(name, first) for (name, _), first in zip(versions, firsts, strict=True)]
        coverage = offsets(*covered) if covered else {}
        entries = {"t": entry(coverage, *versions)}
        bounds = [*pairwise(firsts), (firsts[-1], 1000)]
        for wanted in {name for name, _ in versions}:
            spans = [span for (name, _), span in zip(versions, bounds, strict=True) if name == wanted]
            expected = {(0, o) for start, end in spans for o in range(start, end)} & members(coverage)
            assert members(landed_by_source(entries, wanted)) == expected
            made = {name: made_by(one, ()) for name, one in entries.items()}
            assert (wanted in sources_of(made, coverage)) == bool(expected)

    def test_the_beginning_of_a_hash_names_its_version(self) -> None:
        entries = {"t": entry(offsets((0, 9)), ("aa1", 0), ("aa2", 5)), "u": entry(offsets((0, 9)), ("b", 0))}
        assert [find_source("orders", entries, one) for one in ("aa1", "b")] == ["aa1", "b"]
        for wanted in ("", "a", "aa", "c", "aa11"):
            with pytest.raises(UnknownSourceError):
                find_source("orders", entries, wanted)

    def test_what_an_older_version_landed_is_said_to_be_not_known(self) -> None:
        made = {"t": made_by(entry(offsets((0, 9)), ("b", 5)), ())}
        assert sources_of(made, offsets((0, 9))) == (None, "b")
        assert sources_of(made, offsets((6, 7))) == ("b",)

    @given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20), st.sampled_from(["x", "y", "undo"])), max_size=8))
    def test_the_newest_redo_that_stands_made_the_rows(self, redos: list[tuple[int, int, str]]) -> None:
        made: list[dict[int, str]] = [dict.fromkeys(range(70), "b")]
        entries: list[CommittedEntry] = []
        newest = entry(offsets((0, 70)), ("b", 0))
        for number, (start, size, source) in enumerate(redos):
            body = {"kind": "redo", "commit": f"r{number}", "newest_redo": f"r{number}", "redo_before": newest.newest_redo}
            if source != "undo":
                body |= {"redoes": offsets((start, start + size)), "decision": f"p{number}", "redo_source": source}
                made.append(made[-1] | dict.fromkeys(range(start, start + size), source))
            elif entries and entries[0].entry.undoes is None:
                body |= {"redoes": entries[0].entry.redoes, "decision": "u", "undoes": entries[0].entry.decision}
                made.append(made[-2])
            else:
                continue
            newest = newest.model_copy(update={"redoes": {}, "undoes": None, **body})
            entries.insert(0, CommittedEntry(str(number), number, newest))
        found: dict[int, str] = {}
        for one in made_by(newest, entries):
            assert one.version is not None
            for place in members(one.offsets):
                assert place[1] not in found, "one version for each offset"
                found[place[1]] = one.version.hash
        assert found == made[-1]

    def test_what_a_plan_has_made_itself_counts_as_what_it_was_before(self) -> None:
        bad = entry(offsets((0, 70)), ("bad", 0))
        older = {"kind": "redo", "commit": "r0", "newest_redo": "r0", "redoes": offsets((0, 5)), "decision": "p0"}
        own = {
            "kind": "redo",
            "commit": "r1",
            "newest_redo": "r1",
            "redo_before": "r0",
            "redoes": offsets((0, 30)),
            "decision": "p1",
        }
        first = bad.model_copy(update=older | {"redo_source": "older"})
        newest = bad.model_copy(update=own | {"redo_source": "good"})
        entries = [CommittedEntry("2", 2, newest), CommittedEntry("1", 1, first)]
        assert sources_of({"t": made_by(newest, entries)}, offsets((0, 70))) == ("bad", "good")
        assert sources_of({"t": made_by(newest, entries, before="p1")}, offsets((0, 70))) == ("bad", "older")
        assert sources_of({"t": made_by(newest, entries, before="p1")}, offsets((5, 70))) == ("bad",)

    def test_what_kafka_deletes_changes_no_approval(self) -> None:
        plans = [make_plan("orders", offsets((3, 90)), {"t": offsets((0, 50))}, kafka(earliest=at), {}) for at in (0, 20, 40)]
        assert len({plan.hash for plan in plans}) == 1
        assert [plan.bounds for plan in plans] == [({TOPIC: {0: 3}}, {TOPIC: {0: 50}})] * 3
        assert [members(plan.redone) for plan in plans] == [{(0, o) for o in range(at, 50)} for at in (3, 20, 40)]


class TestEstimates:
    def test_rows_and_time_are_those_of_what_landed_elsewhere(self) -> None:
        def landed(start: int, end: int, rows: int, at_ms: int) -> CommittedEntry:
            body = {"range": offsets((start, end)), "read": end - start, "landed": rows, "rows": rows}
            made = entry(offsets((0, end))).model_copy(update=body)
            return CommittedEntry(str(at_ms), at_ms, made)

        plan = make_plan("orders", offsets((0, 100)), {"t": offsets((0, 400))}, kafka(), {})
        entries = [landed(300, 400, 50, 3_000), landed(200, 300, 50, 2_000), landed(50, 200, 0, 1_000)]
        found = with_estimates(plan, {"t": entries})
        assert (found.tables[0].estimate_rows_in, found.estimate_seconds) == (50, START_SECONDS + 1.0)
        assert found.hash == plan.hash
        assert [line for line in found.lines() if "an estimate" in line][1].startswith("t: about 50 rows come")
        unknown = with_estimates(plan, {"t": entries[2:]})
        assert (unknown.tables[0].estimate_rows_in, unknown.estimate_seconds) == (None, None)


class TestRows:
    @given(st.lists(st.tuples(st.sampled_from([TOPIC, "other"]), st.integers(0, 2), st.integers(0, 70))), ranges)
    def test_rows_of_the_range_are_counted_whatever_else_a_file_holds(
        self, rows: list[tuple[str, int, int]], wanted: Offsets
    ) -> None:
        columns = [[topic for topic, *_ in rows], [ID] * len(rows), [p for _, p, _ in rows], [o for *_, o in rows]]
        names = ["topic", "topic_id", "partition", "offset"]
        kafka_rows = pa.table(
            {name: pa.array(values, KAFKA_TYPE.field(name).type) for name, values in zip(names, columns, strict=True)}
        )
        spans = {(TOPIC, ID, p): pieces for p, pieces in wanted[TOPIC].partitions.items()} if wanted else {}
        assert rows_among(kafka_rows, spans).sum() == sum(topic == TOPIC and (p, o) in members(wanted) for topic, p, o in rows)

    def test_rows_of_another_incarnation_and_of_nobody_are_none_of_it(self) -> None:
        places = [(TOPIC, "id-0", 0, 1), (TOPIC, ID, 0, 1), (None, None, None, None)]
        found = dict(zip(("topic", "topic_id", "partition", "offset"), zip(*places, strict=True), strict=True))
        kafka_rows = pa.table({name: pa.array(values, KAFKA_TYPE.field(name).type) for name, values in found.items()})
        assert rows_among(kafka_rows, {(TOPIC, ID, 0): ((0, 9),)}).sum() == 1

    @given(st.lists(st.integers(0, 99), min_size=1, unique=True), st.integers(1, 60))
    def test_a_file_is_copied_for_each_piece_of_which_it_may_hold_rows(self, held: list[int], most: int) -> None:
        pieces = list(chunks(offsets((5, 95)), most))
        rows = [offset for offset in held if 5 <= offset < 95]
        names = {"topic": [TOPIC] * len(rows), "partition": [0] * len(rows), "offset": rows}
        going = pa.table({name: pa.array(values, KAFKA_TYPE.field(name).type) for name, values in names.items()})
        found = copies_of(going, by_partition(pieces))
        between = [piece for piece in pieces if rows and any(min(rows) <= o <= max(rows) for _, o in members(piece))]
        assert found == len(between)


class TestRefusals:
    def test_what_can_be_redone(self) -> None:
        check_redoable(pipeline(), [])
        check_redoable(pipeline(to_topics=[{"topic": "out"}]), [])

    @pytest.mark.parametrize(
        ("spec", "compacted"),
        [
            (pipeline(tables=None, to_topics=[{"topic": "out"}]), []),
            (pipeline(freshness="real_time", real_time={"tables": "1s"}, to_topics=[{"topic": "out"}]), []),
            (pipeline(), [TOPIC]),
        ],
        ids=["no table", "real time", "a compacted topic"],
    )
    def test_what_cannot_be_redone_is_refused_with_what_works(self, spec: PipelineSpec, compacted: list[str]) -> None:
        with pytest.raises(NotRedoableError) as caught:
            check_redoable(spec, compacted)
        assert isinstance(caught.value, LakeboundError) and "What works: " in str(caught.value)
