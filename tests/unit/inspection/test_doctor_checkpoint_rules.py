"""Each rule of the doctor for foreign checkpoints: when it speaks, what it says, and that it is missed when it is silent."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import pytest
from tests.support.worlds.foreign_checkpoints import (
    OTHER,
    QUERY,
    STARTED_MS,
    TOPIC,
    Foreign,
    commit,
    files,
    metadata,
    offsets,
    restored,
    seen,
    table,
)

from lakebound.inspection.doctor.foreign.diagnosis import RULES
from lakebound.inspection.doctor.foreign.table_facts import ForeignHistory
from lakebound.ledger.lost import LostRange

EMPTY = ForeignHistory("delta:/lake/orders", exists=False)
HEALTHY = Foreign()


def crashed(planned: int, finished: int, *landed: int) -> Foreign:
    """Return a sound checkpoint and tables that stand at the given epochs."""
    return Foreign(files(planned, finished), tuple(table(epoch) for epoch in landed))


@dataclass(frozen=True)
class Case:
    """What a rule must say of a fault."""

    rule: str
    verdict: str
    fault: Foreign
    mends: bool = False


def grown(partition: int, earliest: int) -> Foreign:
    """Return a topic that got one more partition."""
    topic = seen()[TOPIC]
    assert topic is not None
    more = replace(topic, earliest={**topic.earliest, partition: earliest}, latest={**topic.latest, partition: 50})
    return replace(HEALTHY, kafka={TOPIC: more})


def no_commits_of_query() -> Foreign:
    """Return a table whose history was expired down to a commit of maintenance."""
    return HEALTHY.with_tables(ForeignHistory("iceberg:/lake/orders", is_complete=False))


CASES = [
    Case("still-moving", "starting", replace(HEALTHY, is_moving=True)),
    Case("table-unreadable", "needs_person", HEALTHY.with_tables(ForeignHistory("delta:/lake/orders", problem="no log"))),
    Case("not-landed-yet", "starting", Foreign(files(-1, -1), (EMPTY,))),
    Case("not-landed-yet", "starting", Foreign(files(0, -1), (EMPTY,))),
    Case("checkpoint-missing", "needs_person", Foreign({}, (table(5),))),
    Case("checkpoint-missing", "needs_person", Foreign({"metadata": metadata(OTHER)}, (table(5),))),
    Case("reset-by-hand", "needs_person", HEALTHY.without("offsets/", "commits/")),
    Case("metadata-missing", "needs_person", HEALTHY.without("metadata"), mends=True),
    Case("metadata-missing", "needs_person", HEALTHY.having(metadata=b""), mends=True),
    Case("metadata-missing", "needs_person", HEALTHY.rewritten(metadata=b'{"id":"6aa4'), mends=True),
    Case("metadata-missing", "needs_person", HEALTHY.having(metadata=metadata(OTHER)), mends=True),
    Case("query-unknown-to-table", "needs_person", HEALTHY.rewritten(metadata=metadata(OTHER)), mends=True),
    Case("query-unknown-to-table", "needs_person", crashed(0, -1, 0).rewritten(metadata=metadata(OTHER)), mends=True),
    Case("query-unknown-to-table", "needs_person", no_commits_of_query()),
    Case("query-unknown-to-table", "needs_person", HEALTHY.with_tables(EMPTY)),
    Case("stray-batch-file", "needs_person", HEALTHY.rewritten(offsets__999999=offsets(5)), mends=True),
    Case("stray-batch-file", "needs_person", HEALTHY.rewritten(commits__999999=commit()), mends=True),
    Case("stray-batch-file", "needs_person", HEALTHY.rewritten(offsets__0012=offsets(5)), mends=True),
    Case("offsets-missing", "needs_person", HEALTHY.without("offsets/5")),
    Case("offsets-missing", "needs_person", HEALTHY.without("offsets/")),
    Case("newest-offsets-damaged", "needs_person", HEALTHY.having(offsets__5=b"")),
    Case("newest-offsets-damaged", "needs_person", crashed(5, 4, 4).having(offsets__5=b"v1"), mends=True),
    Case("newest-offsets-damaged", "needs_person", crashed(5, 4, 5).having(offsets__5=b"v1\n{}")),
    Case("newest-offsets-damaged", "needs_person", crashed(5, 4, 4).rewritten(offsets__5=b"v9\n{}\n{}"), mends=True),
    Case("previous-offsets-missing", "needs_person", HEALTHY.without("offsets/4"), mends=True),
    Case("previous-offsets-missing", "needs_person", crashed(5, 4, 4).without("offsets/4")),
    Case("previous-offsets-missing", "needs_person", crashed(5, 4, 5).having(offsets__4=offsets(3)), mends=True),
    Case("newest-commit-damaged", "needs_person", HEALTHY.having(commits__5=b""), mends=True),
    Case("newest-commit-damaged", "needs_person", HEALTHY.rewritten(commits__5=b"v1\n{"), mends=True),
    Case("commits-missing", "repairable", HEALTHY.without("commits/")),
    Case("commits-missing", "repairable", HEALTHY.without("commits/5", "commits/4", "commits/3")),
    Case("commits-missing", "repairable", crashed(5, 2, 4)),
    Case("initial-offsets-missing", "needs_person", Foreign(files(0, -1), (EMPTY,)).without("sources/")),
    Case("initial-offsets-missing", "needs_person", Foreign(files(0, -1), (EMPTY,)).having(sources__0__0=b"v1\n{}")),
    Case("table-ahead", "needs_person", crashed(3, 3, 5)),
    Case("table-ahead", "needs_person", crashed(5, 4, 5, 7)),
    Case("table-behind", "needs_person", crashed(5, 5, 3), mends=True),
    Case("table-behind", "needs_person", crashed(5, 1, 3), mends=True),
    Case("table-behind", "needs_person", crashed(5, 5, 5, 4), mends=True),
    Case("rows-removed", "needs_person", HEALTHY.with_tables(restored(table(5), 2))),
    Case(
        "epoch-committed-twice",
        "needs_person",
        HEALTHY.with_tables(replace(table(5), commits=(*table(5).commits, *table(5).commits[:1]))),
    ),
    Case("offsets-out-of-order", "needs_person", HEALTHY.rewritten(offsets__5=offsets(4))),
    Case("offsets-out-of-order", "needs_person", HEALTHY.rewritten(offsets__5=offsets(3))),
    Case("offsets-out-of-order", "needs_person", HEALTHY.rewritten(offsets__5=offsets(5, topic="others"))),
    Case("offsets-out-of-order", "needs_person", crashed(5, 4, 4).rewritten(offsets__4=offsets(3))),
    Case("offsets-out-of-order", "needs_person", crashed(0, -1, 0).rewritten(offsets__0=offsets(0, ends={1: 10}))),
    Case("offsets-contradict-table", "needs_person", HEALTHY.rewritten(offsets__5=offsets(5, ends={0: 60, 1: 68}))),
    Case("offsets-contradict-table", "needs_person", HEALTHY.rewritten(offsets__5=offsets(5, planned_at_ms=STARTED_MS))),
    Case(
        "offsets-contradict-table",
        "needs_person",
        HEALTHY.rewritten(offsets__5=offsets(5, planned_at_ms=STARTED_MS + 10**9)),
    ),
    Case("offsets-unverified", "needs_person", HEALTHY.with_tables(table(5, rows=3)).without(".nothing", "offsets/.5")),
    Case("offsets-unverified", "starting", crashed(0, 0, 0).without_checksums().with_tables(table(0, rows=7))),
    Case("topic-gone", "needs_person", replace(HEALTHY, kafka={TOPIC: None})),
    Case("topic-gone", "needs_person", replace(HEALTHY, kafka=seen(partitions=1))),
    Case("stored-offset-beyond-end", "needs_person", replace(HEALTHY, kafka=seen(latest=59))),
    Case("stored-offset-beyond-end", "needs_person", replace(crashed(5, 4, 4), kafka=seen(latest=59))),
    Case("topic-recreated", "needs_person", replace(HEALTHY, kafka=seen(younger=0))),
    Case("retention-passed", "needs_approval", replace(HEALTHY, kafka=seen(earliest=61))),
    Case("partitions-added", "needs_approval", grown(2, earliest=5)),
]


def judged(case: Case, rules: tuple[object, ...] = RULES) -> bool:
    """Whether the diagnosis is what the case wants: the verdict, and the rule that gives it."""
    diagnosis = case.fault.diagnose(rules)  # type: ignore[arg-type]
    found = {finding.rule: finding.verdict for finding in diagnosis.findings}
    return diagnosis.verdict == case.verdict and found.get(case.rule) == case.verdict


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.verdict}")
def test_a_fault_gets_its_rule_and_verdict(case: Case) -> None:
    diagnosis = case.fault.diagnose()
    assert judged(case), [(finding.rule, finding.verdict, finding.sentence) for finding in diagnosis.findings]
    assert all(finding.runbook for finding in diagnosis.findings if finding.verdict not in ("healthy", "starting"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.verdict}")
def test_exact_files_are_given_where_the_table_and_the_files_say_enough(case: Case) -> None:
    mending = case.fault.mend()
    assert bool(mending and mending.files) == case.mends, mending
    if mending and mending.files:
        mended = replace(case.fault, files=dict(mending.files))
        after = mended.diagnose()
        assert after.verdict == "healthy", after.findings
        assert mended.mend() is None


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_without_any_one_rule_a_case_fails(rule: object) -> None:
    rest = tuple(other for other in RULES if other is not rule)
    assert any(not judged(case, rest) for case in CASES)


def test_every_rule_has_a_case_under_its_own_name() -> None:
    assert {case.rule for case in CASES} == {rule.__name__.replace("_", "-") for rule in RULES}


def test_healthy_is_exactly_where_o_c_and_v_fit() -> None:
    healthy = 0
    for planned, finished, landed in itertools.product(range(7), range(-1, 7), range(-1, 8)):
        fault = Foreign(files(planned, finished), (table(landed) if landed >= 0 else EMPTY,))
        fits = planned in (finished, finished + 1) and landed in (finished, planned)
        diagnosis = fault.diagnose()
        expected = "starting" if fits and landed < 0 else "healthy"
        assert (diagnosis.verdict == expected) == fits, (planned, finished, landed, diagnosis)
        healthy += diagnosis.verdict == "healthy"
    assert healthy == 20


@pytest.mark.parametrize("landed", [(5,), (4,), (4, 5), (5, 4)])
def test_a_crash_is_healthy_and_says_what_runs_again(landed: tuple[int, ...]) -> None:
    diagnosis = crashed(5, 4, *landed).diagnose()
    assert [(finding.rule, finding.replays_records) for finding in diagnosis.findings] == [("batch-in-flight", 20)]
    assert diagnosis.verdict == "healthy"


def test_a_healthy_checkpoint_has_no_findings() -> None:
    diagnosis = replace(HEALTHY, kafka=seen(younger=100)).diagnose()
    assert diagnosis.findings == ()
    assert diagnosis.numbers["lag_records"] == 80
    assert HEALTHY.mend() is None


def test_a_filtering_stream_in_an_object_store_is_taken_on_trust_and_says_so() -> None:
    diagnosis = HEALTHY.without_checksums().with_tables(table(5, rows=7)).diagnose()
    assert [(finding.rule, finding.verdict) for finding in diagnosis.findings] == [("offsets-unverified", "healthy")]


def test_rows_vouch_for_offsets_without_checksums() -> None:
    assert HEALTHY.without_checksums().diagnose().findings == ()


def test_files_that_no_restart_reads_may_be_damaged() -> None:
    damaged = HEALTHY.having(offsets__2=b"", commits__1=b"x", sources__0__0=b"").without("offsets/1", "commits/3")
    assert damaged.diagnose().verdict == "healthy"


def test_leftovers_of_killed_writes_are_counted_and_harmless() -> None:
    diagnosis = HEALTHY.having(**{"offsets__.6.0d3.tmp": b""}).diagnose()
    assert diagnosis.findings == ()
    assert diagnosis.numbers["leftover_files"] == 1


def test_a_stateful_query_is_never_repairable_and_never_mended() -> None:
    stateful = HEALTHY.without("commits/").having(**{"state/": b""})
    assert stateful.diagnose().verdict == "needs_person"
    mending = stateful.mend()
    assert mending is not None
    assert not mending.files
    assert HEALTHY.having(**{"state/": b""}).diagnose().verdict == "healthy"


def test_retention_names_each_lost_range() -> None:
    finding = replace(crashed(5, 4, 4), kafka=seen(earliest=57)).diagnose().decisive
    assert finding is not None
    assert finding.loses == tuple(LostRange(topic=TOPIC, partition=p, start=50, end=57) for p in (0, 1))


def test_a_partition_added_at_its_beginning_is_normal() -> None:
    assert grown(2, earliest=0).diagnose().findings == ()


def test_two_queries_that_fit_are_not_chosen_between() -> None:
    two = replace(table(5), epochs={QUERY: 5, OTHER: 5})
    mending = HEALTHY.with_tables(two).without("metadata").mend()
    assert mending is not None
    assert not mending.files


def test_tables_of_which_one_lacks_the_batch_in_flight_are_mended_with_it() -> None:
    mending = crashed(5, 4, 5, 4).without("metadata").mend()
    assert mending is not None
    names = {path for path in mending.files if ".crc" not in path}
    assert names == {"metadata", "sources/0/0", "offsets/4", "offsets/5", "commits/4"}


def test_a_restore_that_kept_the_streams_rows_is_no_fault() -> None:
    assert HEALTHY.with_tables(restored(table(5), 5)).diagnose().findings == ()


def test_a_changed_file_with_its_old_checksum_is_said_to_go_unnoticed() -> None:
    changed = HEALTHY.having(offsets__5=offsets(5, ends={0: 60, 1: 61}))
    finding = changed.diagnose().decisive
    assert finding is not None
    assert (finding.rule, finding.verdict) == ("newest-offsets-damaged", "needs_person")
    assert "Spark does not notice" in finding.sentence
    cut = HEALTHY.rewritten(offsets__5=b"v1\n").diagnose().decisive
    assert cut is not None
    assert "so the query does not start" in cut.sentence
