"""What the tables of one pipeline say of each other. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lakebound.inspection.proof.history import History, Spans, spans_of, union
from lakebound.ledger.entry import Entry, Offsets
from lakebound.ledger.marks import NextOffsets
from lakebound.tables.table import CommittedEntry

_COUNTS = ("read", "filtered", "landed", "quarantined", "rows")


@dataclass(frozen=True)
class CoverageAndHistory:
    """What one table tells: its id, its coverage and the history behind that."""

    table: str
    coverage: Offsets
    history: History


def contradictions(one: CoverageAndHistory, other: CoverageAndHistory) -> list[str]:
    """Return in what two targets of a pipeline contradict each other; that one is behind is no contradiction.

    Equal ranges that one application read give equal counts. Other applications may have had another transform, and what is
    sent in real time is counted by Spark as rows.
    """
    problems = [
        f"topic {topic} has topic id {held.topic_id} here, and {other.coverage[topic].topic_id} in {other.table}"
        for topic, held in sorted(one.coverage.items())
        if topic in other.coverage and other.coverage[topic].topic_id != held.topic_id
    ]
    theirs = {_range_key(committed.entry): committed for committed in other.history.recent if spans_of(committed.entry.range)}
    for committed in one.history.recent:
        match = theirs.get(_range_key(committed.entry))
        if match is not None:
            problems += _differences(committed, match, other.table)
    return problems


def mark_differences(marks: NextOffsets, others: NextOffsets) -> int:
    """Return by how many offsets the marks of two tables differ."""
    keys = {(topic, p) for topic, partitions in (*marks.items(), *others.items()) for p in partitions}
    return sum(abs(marks.get(topic, {}).get(p, 0) - others.get(topic, {}).get(p, 0)) for topic, p in keys)


def quarantine_contradiction(target: CoverageAndHistory, quarantine: CoverageAndHistory) -> str | None:
    """Return how the quarantined records of a target and those of the quarantine contradict each other, if they do.

    An entry may cover offsets that the other side has not committed yet or no longer knows, and it does not say in which of
    its offsets the bad records are: so each side gives the least and the most that the offsets common to both can hold. What
    another application read, before or after it, may have fitted then, so of this the target may count less: such as after a
    crash between the commits of two tables. What a topic got in real time has its bad records in another topic, while those of
    tables beside it are in the quarantine.
    """
    theirs, ours = spans_of(quarantine.history.base), spans_of(target.history.base)
    expected = _bounds(target.history.recent, whole=None, outside=lambda _: theirs)
    landed = union(spans_of(committed.entry.range) for committed in target.history.recent)
    epochs = {committed.entry.epoch for committed in quarantine.history.recent}
    in_real_time = union(spans_of(one.entry.range) for one in target.history.recent if one.entry.delivery is not None)
    again = {epoch: union([ours, in_real_time, _read_by_others(target, epoch)]) for epoch in epochs}
    held = _bounds(quarantine.history.recent, whole=landed, outside=lambda entry: again[entry.epoch])
    if expected[0] > held[1]:
        return (
            f"its entries count at least {expected[0]} quarantined records, "
            f"but {quarantine.table} has at most {held[1]} of them"
        )
    if held[0] > expected[1]:
        return (
            f"its entries count at most {expected[1]} quarantined records, "
            f"but {quarantine.table} has at least {held[0]} of its offsets"
        )
    return None


def _read_by_others(target: CoverageAndHistory, epoch: int) -> Spans:
    """Return what may have been read with another schema than by the application of an epoch: by another one, or a replay."""
    entries = (committed.entry for committed in target.history.recent)
    return union(spans_of(entry.range) for entry in entries if entry.epoch != epoch or entry.kind == "replay")


def _bounds(entries: Sequence[CommittedEntry], *, whole: Spans | None, outside: Callable[[Entry], Spans]) -> tuple[int, int]:
    """Return the least and the most that entries inside ``whole`` (None: anywhere) and not in ``outside`` count."""
    least = most = 0
    for entry in (committed.entry for committed in entries):
        spans = spans_of(entry.releases if entry.kind == "recall" else entry.range)
        if not entry.quarantined or not spans or entry.delivery is not None:
            continue  # in real time bad records go to a topic
        touched = whole is None or any(_touches(spans, whole))
        inside = whole is None or _is_inside(spans, whole)
        most += entry.quarantined if touched else 0
        # What is recalled for one table another may have landed, when it was good; so may what a redo put into quarantine.
        is_of_others = whole is not None and entry.kind in ("recall", "replay")
        is_certain = inside and not is_of_others and not any(_touches(spans, outside(entry)))
        least += entry.quarantined if is_certain else 0
    return least, most


def _touches(spans: Spans, others: Spans) -> Iterator[bool]:
    for key, intervals in spans.items():
        for start, end in intervals:
            yield any(start < other_end and other_start < end for other_start, other_end in others.get(key, ()))


def _is_inside(spans: Spans, whole: Spans) -> bool:
    return all(
        any(other_start <= start and end <= other_end for other_start, other_end in whole.get(key, ()))
        for key, intervals in spans.items()
        for start, end in intervals
    )


def _range_key(entry: Entry) -> tuple[object, ...]:
    return (entry.epoch, entry.delivery, *sorted(spans_of(entry.range).items()))


def _differences(committed: CommittedEntry, match: CommittedEntry, table: str) -> Iterator[str]:
    for name in _COUNTS:
        here, there = getattr(committed.entry, name), getattr(match.entry, name)
        if here != there:
            yield (
                f"commit {committed.version} counts {name} {here}, and commit {match.version} of {table} "
                f"counts {name} {there} for the same offsets"
            )
