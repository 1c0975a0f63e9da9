"""Which partitions are compacted, and in which order, within a run's budget. Pure. How: see ``packing``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from lakebound.operations.maintenance.history import PastRun
from lakebound.operations.maintenance.packing import Packing, pack, small_below
from lakebound.operations.maintenance.planning_rules import planning_of
from lakebound.operations.maintenance.steps import Compact
from lakebound.operations.maintenance.wording import count_words, size_words
from lakebound.spec.maintenance import DAY_SECONDS, MaintenanceSpec
from lakebound.tables.health import PartitionFacts, TableFacts

_ORDER_WITHIN_SECONDS = 2 * DAY_SECONDS
"""A partition that got nothing for longer stays as it is: the record of what was ordered does not go back for ever."""

_DELETES_EVERY_SECONDS = DAY_SECONDS
_MOST_DOUBLINGS = 6
_MOST_NAMED = 20


@dataclass(frozen=True)
class Candidate:
    """A partition whose compaction is due.

    Attributes:
        step: What would be done.
        why: What makes it due.
        is_closed: It got no file for a while.
    """

    step: Compact
    why: str
    is_closed: bool
    partition: PartitionFacts
    policy: MaintenanceSpec

    @property
    def rank(self) -> tuple[bool, float]:
        """By which the best comes first: closed partitions, and then files removed per byte."""
        return not self.is_closed, -self.step.files_removed / max(self.step.cost_bytes, 1)

    def within(self, max_bytes: int) -> Compact | None:
        """Return the step, or a part of it that rewrites at most ``max_bytes``; None where there is none."""
        if self.step.cost_bytes <= max_bytes:
            return self.step
        if self.step.with_deletes or (planning_of(self.step.table).orders_whole_partitions and self.step.order_by):
            return None
        return _rewrite(self.step.table, self.partition, self.policy, self.why, max_bytes)


def candidates(
    facts: TableFacts, runs: PastRun, policy: MaintenanceSpec, now_ms: int
) -> tuple[tuple[Candidate, ...], tuple[str, ...]]:
    """Return the partitions of a table whose compaction is due, and what is left, with the reason.

    Partitions with few small files are not even mentioned.

    Args:
        facts: Sizes and files of each partition.
        runs: What earlier runs did to the table.
        policy: What the pipeline's YAML asks for.
        now_ms: Epoch milliseconds.
    """
    if why_not := planning_of(facts.table).not_compacted(facts):
        return (), (f"{facts.table}: {why_not}",)
    found: list[Candidate] = []
    left: dict[str, list[str]] = {}
    for partition in facts.partitions:
        due = _due(facts.table, partition, runs, policy, now_ms)
        if isinstance(due, Candidate):
            found.append(due)
        elif due:
            left.setdefault(due, []).append(partition.name)
    return tuple(found), tuple(_left(facts.table, reason, names) for reason, names in left.items())


def take(found: Iterable[Candidate], budget_bytes: int) -> tuple[tuple[Compact, ...], tuple[str, ...]]:
    """Return the steps that fit a run's budget, the best first, and what does not fit.

    A partition that does not fit as a whole is compacted in part, its smallest files first. One that cannot be done in part
    and is larger than the whole budget runs alone: it would wait for ever else.
    """
    steps: list[Compact] = []
    left: list[str] = []
    free = budget_bytes
    for candidate in sorted(found, key=lambda one: one.rank):
        step = candidate.within(free) or (candidate.step if not steps else None)
        if step is None:
            left.append(_beyond(candidate.step, budget_bytes))
            continue
        if step.cost_bytes < candidate.step.cost_bytes:
            left.append(_beyond(candidate.step, budget_bytes, done_bytes=step.cost_bytes))
        steps.append(step)
        free = max(0, free - step.cost_bytes)
    more = len(left) - _MOST_NAMED
    if more > 0:
        left[_MOST_NAMED:] = [f"{count_words(more, 'more partition')} beyond this run's budget"]
    return tuple(steps), tuple(left)


def _due(table: str, partition: PartitionFacts, runs: PastRun, policy: MaintenanceSpec, now_ms: int) -> Candidate | str:
    """Return the partition's compaction, or why it is left; empty where nobody would expect one."""
    spec = policy.compaction
    is_closed = _newest_age_seconds(partition, now_ms) >= spec.hot_seconds
    if partition.delete_files and not planning_of(table).rewrites_deletes:
        return "deletion vectors, which only Spark knows: run its REORG or OPTIMIZE while the pipeline is stopped"
    why = ""
    step = _ordering(table, partition, runs, policy, now_ms) or _undeleting(table, partition, runs, policy, now_ms)
    if step is None:
        is_due, why = _trigger(partition, policy, now_ms, is_closed=is_closed)
        if not is_due:
            return why
        step = _rewrite(table, partition, policy, why, None)
        if step is None:
            return f"small files, but no worthwhile rewrite removes at least {count_words(spec.min_files_removed, 'file')}"
    rested = _rested_seconds(partition, runs, now_ms)
    pause = policy.cooldown_seconds * 2 ** min(runs.fruitless.get(partition.name, 0), _MOST_DOUBLINGS)
    if rested is not None and rested < pause:
        return f"rewritten less than {pause:,.0f} s ago"
    return Candidate(step, why, is_closed, partition, policy)


def _trigger(partition: PartitionFacts, policy: MaintenanceSpec, now_ms: int, *, is_closed: bool) -> tuple[bool, str]:
    """Return whether the partition's small files make it due, and the numbers; or why it is left, empty where they are few."""
    spec = policy.compaction
    small = [file for file in partition.files if file.size_bytes < small_below(spec)]
    count = count_words(len(small), "small file")
    if not is_closed:
        if len(small) >= spec.hot_min_small_files:
            return True, f"{count}; the limit while new files still arrive is {spec.hot_min_small_files:,}"
        return False, "hot, because new files still arrive" if len(small) >= spec.min_small_files else ""
    if len(small) >= spec.min_small_files:
        return True, f"{count}; the limit is {spec.min_small_files:,}"
    age = max((now_ms - file.added_at_ms for file in small), default=0) / 1000
    if len(small) >= spec.min_aged_small_files and age >= spec.max_age_seconds:
        return True, f"{count}, the oldest {age / 3600:,.1f} h old"
    return False, ""


def _rewrite(table: str, partition: PartitionFacts, policy: MaintenanceSpec, why: str, max_bytes: int | None) -> Compact | None:
    spec, rules = policy.compaction, planning_of(table)
    found = pack(partition.files, spec, joins_neighbours=rules.joins_neighbours, max_bytes=max_bytes)
    if found is None:
        return None
    return Compact(
        table=table,
        reason=f"{why}; {_what(found)}",
        cost_bytes=found.cost_bytes,
        files_removed=found.files_removed,
        partition=partition.values,
        below_bytes=found.below_bytes,
        target_file_bytes=spec.target_file_bytes,
        order_by=() if rules.orders_whole_partitions else spec.sort_by,
    )


def _what(found: Packing) -> str:
    return f"{found.files_taken:,} of {size_words(found.cost_bytes)} become {found.files_written:,}"


def _ordering(table: str, partition: PartitionFacts, runs: PastRun, policy: MaintenanceSpec, now_ms: int) -> Compact | None:
    """Return the Z-ordering of a whole partition, where the format can order no less.

    It is done once the partition has got nothing for a while, and again when as many bytes have come as were in order.
    """
    spec, age = policy.compaction, _newest_age_seconds(partition, now_ms)
    if not (
        planning_of(table).orders_whole_partitions and spec.zorder_by and spec.max_age_seconds <= age < _ORDER_WITHIN_SECONDS
    ):
        return None
    ordered_at_ms = runs.ordered_at_ms.get(partition.name, -1)
    size = sum(file.size_bytes for file in partition.files)
    unordered = sum(file.size_bytes for file in partition.files if file.added_at_ms > ordered_at_ms)
    if len(partition.files) < 2 or 2 * unordered < size:
        return None
    return _whole(
        table, partition, policy, f"{size_words(unordered)} are not ordered by {', '.join(spec.zorder_by)}"
    ).model_copy(update={"order_by": spec.zorder_by})


def _undeleting(table: str, partition: PartitionFacts, runs: PastRun, policy: MaintenanceSpec, now_ms: int) -> Compact | None:
    """Return the rewrite of a partition that rids readers of its delete files; once a day at most."""
    rested = _rested_seconds(partition, runs, now_ms)
    if partition.delete_files <= policy.compaction.max_delete_files or not planning_of(table).rewrites_deletes:
        return None
    if rested is not None and rested < _DELETES_EVERY_SECONDS:
        return None
    step = _whole(table, partition, policy, count_words(partition.delete_files, "delete file"))
    return step.model_copy(update={"with_deletes": True, "order_by": policy.compaction.sort_by})


def _whole(table: str, partition: PartitionFacts, policy: MaintenanceSpec, reason: str) -> Compact:
    size = sum(file.size_bytes for file in partition.files)
    return Compact(
        table=table,
        reason=reason,
        cost_bytes=size,
        files_removed=max(0, len(partition.files) - max(1, ceil(size / policy.compaction.target_file_bytes))),
        partition=partition.values,
        below_bytes=small_below(policy.compaction),
        target_file_bytes=policy.compaction.target_file_bytes,
    )


def _newest_age_seconds(partition: PartitionFacts, now_ms: int) -> float:
    return (now_ms - max(file.added_at_ms for file in partition.files)) / 1000


def _rested_seconds(partition: PartitionFacts, runs: PastRun, now_ms: int) -> float | None:
    last = runs.compacted_at_ms.get(partition.name)
    return None if last is None else (now_ms - last) / 1000


def _left(table: str, reason: str, names: Sequence[str]) -> str:
    others = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    return f"{_at(table, names[0] + others)}: {reason}"


def _beyond(step: Compact, budget_bytes: int, *, done_bytes: int = 0) -> str:
    name = "/".join(f"{field}={value}" for field, value in step.partition.items())
    rest = size_words(step.cost_bytes - done_bytes)
    return f"{_at(step.table, name)}: {rest} are beyond this run's budget of {size_words(budget_bytes)}"


def _at(table: str, name: str) -> str:
    return f"{table}: {name}" if name else table
