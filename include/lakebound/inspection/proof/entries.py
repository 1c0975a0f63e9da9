"""One table, judged by its entries alone. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lakebound.inspection.proof.facts import TableAsFound
from lakebound.inspection.proof.history import History, Overlaps, Spans, difference, given_up, ranges_of, spans_of, union
from lakebound.inspection.proof.redone import Share, shares_of, size_of
from lakebound.inspection.proof.result import Found, OldestEntry, Ranges, TableProof, describe, found
from lakebound.ledger.entry import Entry, count, high_water_marks
from lakebound.ledger.intervals import gaps, total
from lakebound.tables.table import CommittedEntry

MAX_NAMED = 20
"""Number of commits that are named; the others are only counted."""


def judge_entries(facts: TableAsFound, history: History, overlaps: Overlaps, pipeline: str) -> TableProof:
    """Return what the entries of a table say of themselves.

    Args:
        facts: The table as it was found, with its coverage.
        history: Entries on which this coverage stands.
        overlaps: Offsets that several of these entries say they landed.
        pipeline: Name of the pipeline that alone may have written the entries.
    """
    lost = found(ranges_of(given_up(history)))
    counted = _counts(shares_of(history))
    proof = TableProof(
        table=facts.table,
        role=facts.role,
        source=facts.source,
        high_water_marks=high_water_marks(facts.coverage),
        skipped=lost,
        since=_oldest(history),
        assumed=_size(_assumed(history)),
        records=counted["landed"],
        rows=max(0, counted["rows"] - sum(one.entry.erases for one in history.standing if one.entry.kind == "redo")),
        filtered=counted["filtered"],
        quarantined=counted["quarantined"],
        released=sum(_released(one.entry) for one in history.standing),
        problems=tuple(named(_contradictions(history.recent, pipeline))),
        erased=facts.erased.rows,
        notes=(
            *_limits(history),
            *(
                [f"{counted['cut']} of its entries count offsets that were redone later: of these the counts are upper bounds"]
                * bool(counted["cut"])
            ),
            *([f"lost by decision, as a skip entry says: {lost}"] if lost else []),
            *(
                [f"{facts.erased.rows} of its rows were erased by decision; its entries count them as landed"]
                * bool(facts.erased)
            ),
        ),
    )
    if overlaps.found:
        pairs = (f"{left} and {right}" for left, right in overlaps.versions)
        text = f"offsets landed by more than one commit: {overlaps.found} (commits {', '.join(named(pairs))})"
        proof = proof.adding(problems=[text], overlaps=overlaps.found, duplicated=overlaps.found)
    return _judge_coverage(proof, facts, history)


def without_ledger(facts: TableAsFound) -> TableProof:
    """Return the proof of a table whose coverage had to be worked out without any entry."""
    return TableProof(
        table=facts.table,
        role=facts.role,
        source=facts.source,
        high_water_marks=high_water_marks(facts.coverage),
        records=count(facts.coverage),
        problems=(
            f"it has rows and no ledger entry can be reached: its coverage was worked out from its {_ORIGIN[facts.source]}, "
            "and is a lower bound; see the runbook no-ledger",
        ),
    )


def unread(facts: TableAsFound) -> TableProof:
    """Return the proof of a table that is not there, or whose ledger cannot be read."""
    empty = TableProof(table=facts.table, role=facts.role)
    if facts.error:
        return empty.adding(problems=[facts.error])
    return empty.adding(notes=["the table is not there yet" if not facts.exists else "the table is empty and has no entry"])


def named(texts: Iterable[str]) -> list[str]:
    """Return the first texts, and how many more there are."""
    every = list(texts)
    more = len(every) - MAX_NAMED
    return every[:MAX_NAMED] + ([f"and {more} more of this kind"] if more > 0 else [])


_ORIGIN = {"statistics": "files' statistics", "scan": "rows"}


def _judge_coverage(proof: TableProof, facts: TableAsFound, history: History) -> TableProof:
    covered = spans_of(facts.coverage)
    said = union([spans_of(history.base), *(spans_of(committed.entry.range) for committed in history.recent)])
    unbacked, lost = ranges_of(difference(covered, said)), ranges_of(difference(said, covered))
    missing = Found()
    if unbacked:
        missing = found(unbacked)
        proof = proof.adding(problems=[f"offsets in the coverage that no commit landed: {missing}"])
    if lost:
        text = f"landed offsets that are missing in the coverage; a start would land them again: {found(lost)}"
        proof = proof.adding(problems=[text])
    holes = holes_of(facts)
    if holes:
        missing = missing.plus(found(holes))
        proof = proof.adding(problems=[f"gaps in the coverage: {found(holes)}"], gaps=found(holes))
    return proof.adding(missing=missing)


def holes_of(facts: TableAsFound) -> Ranges:
    """Return the gaps of a target's coverage, marks included; a quarantine's coverage may have some."""
    if facts.role == "quarantine":
        return {}
    return ranges_of(
        {
            (topic, held.topic_id, partition): gaps(intervals)
            for topic, held in facts.coverage.items()
            for partition, intervals in held.partitions.items()
            if gaps(intervals)
        }
    )


def _limits(history: History) -> Iterator[str]:
    if history.is_complete:
        return
    if not history.recent and not count(history.base):
        return
    oldest = f"commit {history.standing[0].version}" if history.standing else "none"
    held = describe(ranges_of(_assumed(history))) or "nothing"
    yield f"older ledger entries were removed (oldest kept: {oldest}); counted as landed before it: {held}"


def _released(entry: Entry) -> int:
    """Return how many records an entry landed or filtered that were in quarantine before."""
    return entry.landed + entry.filtered if entry.kind == "release" else entry.from_quarantine


def _counts(shares: Sequence[Share]) -> dict[str, int]:
    """Return the sums of the entries' counts, and of how many entries a redo has left a part only.

    What is left of such an entry is at most what it counts, and at most as many records as it has offsets left. Rows are all of
    them: each redo says how many it took out.
    """
    sums = {"landed": 0, "filtered": 0, "quarantined": 0, "rows": 0, "cut": 0}
    for share in shares:
        most = size_of(share.spans) if share.redone else None
        for name in ("landed", "filtered", "quarantined"):
            own = getattr(share.entry, name)
            sums[name] += own if most is None else min(own, most)
        sums["rows"] += share.entry.rows
        sums["cut"] += bool(most)
    return sums


def _oldest(history: History) -> OldestEntry | None:
    if history.is_complete or not history.standing:
        return None
    oldest = history.standing[0]
    return OldestEntry(version=oldest.version, committed_at_ms=oldest.committed_at_ms)


def _assumed(history: History) -> Spans:
    """Return what was landed before all entries that are kept."""
    if history.is_complete:
        return {}
    return difference(spans_of(history.base), union(spans_of(committed.entry.range) for committed in history.earlier))


def _size(spans: Spans) -> int:
    return sum(total(intervals) for intervals in spans.values())


def _contradictions(recent: Sequence[CommittedEntry], pipeline: str) -> Iterator[str]:
    epoch = 0
    for committed in recent:
        entry, where = committed.entry, f"the entry of commit {committed.version}"
        if entry.pipeline != pipeline:
            yield f"{where} belongs to pipeline {entry.pipeline!r}"
        if entry.epoch < epoch:
            yield f"{where} has epoch {entry.epoch}, after one with epoch {epoch}: a superseded application wrote it"
        epoch = max(epoch, entry.epoch)
        yield from (f"{where} {text}" for text in _count_problems(entry))


def _count_problems(entry: Entry) -> Iterator[str]:
    parts = entry.filtered + entry.landed + entry.quarantined
    if entry.read != parts:
        yield (
            f"read {entry.read} records, but accounts for {parts}: "
            f"{entry.filtered} filtered, {entry.landed} landed, {entry.quarantined} quarantined"
        )
    offsets = count(entry.range) + count(entry.releases) + count(entry.redoes)
    if entry.read > offsets:
        yield f"read {entry.read} records of a range of {offsets} offsets"
    # A quarantine lands no record: its rows are the quarantined ones.
    fits = entry.rows >= entry.landed if entry.landed else entry.rows in (0, entry.quarantined)
    # Rows of windows come from many records, also of commits before.
    if not fits and entry.windows is None:
        yield f"says that {entry.landed} landed records gave {entry.rows} rows"
