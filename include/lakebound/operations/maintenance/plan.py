"""The plan of a maintenance run: facts, past and policy in, steps out, each with its reason. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lakebound.operations.maintenance.compaction import Candidate, candidates, take
from lakebound.operations.maintenance.history import PastRun, TablePast
from lakebound.operations.maintenance.packing import small_below
from lakebound.operations.maintenance.planning_rules import PlannedTable, planning_of, property_warnings
from lakebound.operations.maintenance.refusals import NOTHING_REFUSED, Refusals
from lakebound.operations.maintenance.steps import (
    Compact,
    MaintenancePlan,
    MaintenanceStep,
    RemoveOrphans,
)
from lakebound.operations.maintenance.wording import age_seconds, ago, count_words
from lakebound.spec.maintenance import MaintenanceSpec
from lakebound.tables.health import TableFacts


@dataclass(frozen=True)
class TableSituation:
    """What is known of one table.

    Attributes:
        table: ``format:name``.
        facts: Its files; None where there is no such table, or it cannot be read.
        past: Its versions; None likewise.
        runs: What earlier runs did to it.
        problem: Why it cannot be read.
        refusals: What cannot be done where it lies.
    """

    table: str
    facts: TableFacts | None
    past: TablePast | None
    runs: PastRun
    problem: str = ""
    refusals: Refusals = NOTHING_REFUSED


@dataclass(frozen=True)
class TableSteps:
    """What one table needs.

    Attributes:
        steps: In their order.
        left: What is not done, with the reason.
        warnings: Dangerous properties, and why nothing may be taken away.
    """

    steps: tuple[MaintenanceStep, ...] = ()
    left: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def plan(pipeline: str, tables: Sequence[TableSituation], policy: MaintenanceSpec, now_ms: int) -> MaintenancePlan:
    """Return the plan of a run over all tables of a pipeline: one table after the other, and one budget for all.

    Args:
        pipeline: Name of the pipeline.
        tables: What is known of each table, in the order in which they are maintained.
        policy: What the pipeline's YAML asks for.
        now_ms: Epoch milliseconds.
    """
    if not policy.enabled:
        return MaintenancePlan(pipeline=pipeline, at_ms=now_ms, left=("maintenance.enabled is false in the pipeline's YAML",))
    due: list[Candidate] = []
    left: list[str] = []
    for one in tables:
        if one.facts is not None and not _why_not(one) and not _is_sparks(one.refusals, one.facts):
            facts = _rewritable(one.facts) if one.refusals.sparks else one.facts
            found, others = candidates(facts, one.runs, policy, now_ms)
            due += found
            left += others
    compactions, beyond = take(due, policy.compaction.max_bytes_per_run)
    plans = [_finish(one, [step for step in compactions if step.table == one.table], policy, now_ms) for one in tables]
    return MaintenancePlan(
        pipeline=pipeline,
        at_ms=now_ms,
        steps=tuple(step for one in plans for step in one.steps),
        left=(*left, *beyond, *(line for one in plans for line in one.left)),
        warnings=tuple(line for one in plans for line in one.warnings),
    )


def _finish(one: TableSituation, compactions: Sequence[Compact], policy: MaintenanceSpec, now_ms: int) -> TableSteps:
    """Return a table's steps, its compactions among them."""
    why_not = _why_not(one)
    if why_not or one.facts is None or one.past is None:
        return TableSteps(left=(f"{one.table}: {why_not}",))
    facts, past = one.facts, one.past
    rules, planned = planning_of(one.table), PlannedTable(facts, past, one.runs, policy, now_ms)
    steps = [*rules.before(planned), *compactions, *rules.after(planned, compactions)]
    if not one.refusals.sparks:
        steps += rules.by_spark(facts, policy, compactions)
    looking = list(_orphans(facts, past, one.runs, policy, now_ms))
    steps += [step for step in looking if not _is_refused(step, one.refusals)]
    left = [*_refused(one, facts, looking, policy, now_ms)]
    left += [f"{one.table}: none of its old versions is removed: {problem}" for problem in past.problems]
    left += _slow_readers(past, policy, now_ms)
    if not facts.rows and not compactions:
        left.append(f"{one.table}: it holds no rows, so there are no files to rewrite")
    return TableSteps(tuple(steps), tuple(left), property_warnings(one.table, facts.properties, policy))


def _refused(
    one: TableSituation, facts: TableFacts, looking: Sequence[RemoveOrphans], policy: MaintenanceSpec, now_ms: int
) -> Iterator[str]:
    """Yield why steps that are due are not done."""
    is_due = _is_sparks(one.refusals, facts) and candidates(facts, one.runs, policy, now_ms)[0]
    if one.refusals.sparks and (is_due or any(planning_of(one.table).by_spark(facts, policy, ()))):
        yield one.refusals.sparks
    if any(_is_refused(step, one.refusals) for step in looking):
        yield one.refusals.moves
    older = [file for partition in facts.partitions for file in partition.files if file.is_of_older_spec]
    count = sum(file.size_bytes < small_below(policy.compaction) for file in older)
    if one.refusals.sparks and count > 1:
        yield (
            f"{one.table}: {count_words(count, 'small file')} of an older partitioning are not rewritten, because only Spark "
            f"can do that, and Lakebound's Spark does not reach this catalog. Use another engine"
        )


def _rewritable(facts: TableFacts) -> TableFacts:
    """Return a table's facts without the files that only Spark rewrites: those of an older partitioning."""
    kept = [
        partition.model_copy(update={"files": tuple(file for file in partition.files if not file.is_of_older_spec)})
        for partition in facts.partitions
    ]
    return facts.model_copy(update={"partitions": tuple(partition for partition in kept if partition.files)})


def _is_sparks(refusals: Refusals, facts: TableFacts) -> bool:
    """Whether data files are not rewritten, because only Spark joins them with their delete files."""
    return bool(refusals.sparks) and bool(
        facts.metadata.dangling_delete_files or any(partition.delete_files for partition in facts.partitions)
    )


def _is_refused(step: RemoveOrphans, refusals: Refusals) -> bool:
    return bool(refusals.moves) and step.mode == "quarantine"


def _why_not(one: TableSituation) -> str:
    if one.problem:
        return one.problem
    if one.facts is None or one.past is None:
        return "there is no such table yet"
    return "" if one.past.current is not None else "it has no commit yet"


def _orphans(
    facts: TableFacts, past: TablePast, runs: PastRun, policy: MaintenanceSpec, now_ms: int
) -> Iterator[RemoveOrphans]:
    orphans, since = policy.orphans, age_seconds(runs.orphans_at_ms, now_ms)
    if orphans.mode == "off" or since < orphans.every_seconds or past.problems:
        return
    reason = "never looked for" if runs.orphans_at_ms is None else f"last looked for {ago(since)} ago"
    yield RemoveOrphans(
        table=facts.table,
        reason=f"{reason}; only files older than {ago(orphans.min_age_seconds)} count",
        mode=orphans.mode,
        older_than_ms=now_ms - round(orphans.min_age_seconds * 1000),
        delete_quarantined_before_ms=now_ms - round(orphans.keep_quarantined_seconds * 1000),
    )


def _slow_readers(past: TablePast, policy: MaintenanceSpec, now_ms: int) -> Iterator[str]:
    """Yield the readers for which more is kept than the policy requires."""
    since_ms = {version.version: version.committed_at_ms for version in past.versions}
    for name, pin in sorted(past.pins.items()):
        behind = age_seconds(since_ms.get(pin, now_ms), now_ms)
        if behind > policy.history.keep_all_seconds:
            yield (
                f"{past.table}: reader {name!r} last read a version of {ago(behind)} ago; "
                f"all later versions are kept until it continues"
            )
