"""The diagnosis of a foreign checkpoint: all rules, and two that depend on the findings of the others. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lakebound.inspection.doctor.diagnosis import Diagnosis, RuleFinding, worst
from lakebound.inspection.doctor.foreign import file_rules as files
from lakebound.inspection.doctor.foreign import kafka_rules as kafka
from lakebound.inspection.doctor.foreign import table_rules as tables
from lakebound.inspection.doctor.foreign.facts import ForeignFacts
from lakebound.inspection.doctor.foreign.standing import Standing
from lakebound.ledger.marks import lag

ForeignRule = Callable[[Standing], RuleFinding | None]

RUNBOOKS = (files.RUNBOOK, tables.RUNBOOK, kafka.RUNBOOK)
"""Every page that a finding of a foreign checkpoint may name."""

RULES: tuple[ForeignRule, ...] = (
    tables.still_moving,
    tables.table_unreadable,
    tables.not_landed_yet,
    files.checkpoint_missing,
    files.reset_by_hand,
    files.metadata_missing,
    files.query_unknown_to_table,
    files.stray_batch_file,
    files.offsets_missing,
    files.newest_offsets_damaged,
    files.previous_offsets_missing,
    files.newest_commit_damaged,
    files.commits_missing,
    files.initial_offsets_missing,
    tables.table_ahead,
    tables.table_behind,
    tables.rows_removed,
    tables.epoch_committed_twice,
    files.offsets_out_of_order,
    tables.offsets_contradict_table,
    files.offsets_unverified,
    kafka.topic_gone,
    kafka.stored_offset_beyond_end,
    kafka.topic_recreated,
    kafka.retention_passed,
    kafka.partitions_added,
)


def diagnose(subject: str, facts: ForeignFacts, rules: Sequence[ForeignRule] = RULES) -> Diagnosis:
    """Return what is wrong with a checkpoint; healthy means that a restart is exact. A foreign checkpoint is never repaired.

    Args:
        subject: Name of the checkpoint, as the diagnosis repeats it.
        facts: The checkpoint, its tables and its topics as they were read.
        rules: What to judge by, in this order; all rules unless given.
    """
    standing = Standing(facts)
    found = [finding for rule in rules if (finding := rule(standing)) is not None]
    if facts.checkpoint.is_stateful and worst(finding.verdict for finding in found) == "repairable":
        found.append(_stateful(standing))
    if worst(finding.verdict for finding in found) == "healthy" and standing.planned > standing.finished:
        found.append(_in_flight(standing))
    return Diagnosis(subject=subject, findings=tuple(found), numbers=_numbers(standing))


def _stateful(s: Standing) -> RuleFinding:
    return RuleFinding(
        rule="stateful",
        verdict="needs_person",
        sentence="the query keeps state, which must fit the batch that runs again; the doctor cannot check whether it does",
        runbook=files.RUNBOOK,
        evidence=s.evidence(),
    )


def _in_flight(s: Standing) -> RuleFinding:
    return RuleFinding(
        rule="batch-in-flight",
        verdict="healthy",
        sentence=f"batch {s.planned} is planned and not finished: either it runs now, or a restart runs it again with the same "
        "range and lands what the table does not have",
        evidence=s.evidence(),
        replays_records=max(0, s.ranges.records(s.planned) or 0),
    )


def _numbers(s: Standing) -> dict[str, float | None]:
    in_flight = s.ranges.records(s.planned) if s.planned > s.lowest else 0
    stored = kafka.going_on_from(s)
    waiting = None
    if stored is not None and s.kafka_topics is not None:
        ends = {topic: seen.latest for topic, seen in s.kafka_topics.items() if seen is not None}
        # Two sources of one query may read the same topic, each from its own offsets.
        waiting = sum(lag({topic: {p: offset}}, ends) or 0 for (_, topic, p), offset in stored.marks.items())
    return {
        "offsets_newest_batch": s.planned,
        "commits_newest_batch": s.finished,
        "table_lowest_epoch": s.lowest,
        "table_highest_epoch": s.highest,
        "recovery_debt_records": in_flight,
        "lag_records": waiting,
        "leftover_files": s.checkpoint.leftovers,
    }
