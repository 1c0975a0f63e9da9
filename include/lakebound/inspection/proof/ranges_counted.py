"""What rows and Kafka hold in the range of each entry, against what the entry counts. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lakebound.inspection.proof.facts import OffsetArray
from lakebound.inspection.proof.history import Spans, below, difference, ranges_of, union
from lakebound.inspection.proof.offset_arrays import NONE, Arrays, both, found_offsets, spans_from, within
from lakebound.inspection.proof.redone import Share
from lakebound.inspection.proof.result import Found, found
from lakebound.ledger.entry import Entry
from lakebound.ledger.topics import TopicIdPartition

CountArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Evidence:
    """What is known of the offsets of a coverage.

    Attributes:
        decided: Distinct offsets landed or quarantined.
        unaccounted: Readable offsets that are neither.
        earliest: Kafka's earliest offset by topic, topic id and partition: below it, what was readable is not known.
    """

    decided: Arrays
    unaccounted: Arrays
    earliest: Callable[[str, str, int], int]

    def candidates(self, spans: Spans) -> Found:
        """Return the offsets of the spans that are not decided and were, or may have been, readable."""
        untold = difference(below(spans, self.earliest), spans_from(within(self.decided, spans)))
        return found(ranges_of(union([untold, spans_from(within(self.unaccounted, spans))])))


@dataclass(frozen=True)
class EntryCounts:
    """What was found in the range of one entry.

    Attributes:
        share: The entry, with the offsets that are its own.
        landed: Distinct offsets with rows.
        rows: Rows, doubled ones once.
        quarantined: Distinct offsets in quarantine.
        shared: Offsets that are both landed and in quarantine.
        unaccounted: Readable offsets that are neither.
        untold: Offsets that are neither, and of which Kafka no longer tells whether they were readable.
        erased: Distinct offsets of which every row was erased by decision.
        erased_rows: Rows that were erased by decision.
    """

    share: Share
    landed: int
    rows: int
    quarantined: int
    shared: int
    unaccounted: int
    untold: int
    erased: int = 0
    erased_rows: int = 0

    @property
    def version(self) -> str:
        """Of its commit."""
        return self.share.committed.version

    @property
    def entry(self) -> Entry:
        """The entry."""
        return self.share.entry

    @property
    def spans(self) -> Spans:
        """The offsets that are its own."""
        return self.share.spans

    @property
    def has_read_again(self) -> bool:
        """Whether it landed records that are in quarantine because they did not fit when they were read before, or later.

        It is so where the rows are exactly those that it counts, and the quarantine has, beside what was landed, exactly those
        that it counts as bad.
        """
        entry, redone = self.entry, self.share.redone
        held = (self.landed + self.erased, self.rows + self.erased_rows, self.quarantined - self.shared)
        counted = (entry.landed, entry.rows, entry.quarantined)
        agrees = all(found <= most for found, most in zip(held, counted, strict=True)) if redone else held == counted
        return agrees and self.shared > 0 and entry.kind in ("land", "replay")

    def shortfall(self, evidence: Evidence, *, landed_is_not_bad: bool = False) -> Found:
        """Return what is missing of the range: exact offsets where they can be told, else the range and the number.

        Args:
            evidence: What is known of the offsets.
            landed_is_not_bad: What is both landed and in quarantine is none of those that the entry counts as quarantined.
        """
        entry = self.entry
        if entry.kind == "skip":
            return Found()
        in_quarantine = self.quarantined - (self.shared if landed_is_not_bad else 0)
        fewer = max(entry.landed - self.landed - self.erased, 0) + max(entry.quarantined - in_quarantine, 0)
        lacking = max(self.unaccounted - entry.filtered, fewer - self.share.redone)
        if lacking <= 0:
            return self._rows_shortfall()
        exact = Found()
        # A record that a redo landed from quarantine is there still, so it is no candidate, and may be what is missing.
        if lacking >= self.unaccounted + self.untold and not entry.from_quarantine:
            exact = evidence.candidates(self.spans)
        elif not entry.filtered:
            exact = found_offsets(within(evidence.unaccounted, self.spans))
        rest = lacking - exact.count
        return exact.plus(Found(count=rest, within=ranges_of(self.spans))) if rest > 0 else exact

    @property
    def surplus(self) -> Found:
        """Records, else rows, beyond those that the entry counts."""
        if self.entry.landed:
            extra = max(self.landed - self.entry.landed, self.rows - self.entry.rows)
        else:
            extra = max(self.rows - self.entry.rows, 0)
        return Found(count=extra, within=ranges_of(self.spans)) if extra > 0 else Found()

    def _rows_shortfall(self) -> Found:
        if self.share.redone:
            return Found()  # how many rows the redone records had is not known, only that of all that a redo took out
        lacking = self.entry.rows - self.rows - self.erased_rows
        return Found(count=lacking, within=ranges_of(self.spans)) if lacking > 0 else Found()


def count_entries(
    shares: Sequence[Share],
    evidence: Evidence,
    *,
    landed: Arrays,
    rows: Arrays,
    quarantined: Arrays,
    erased: Arrays | None = None,
    erased_rows: Arrays | None = None,
) -> list[EntryCounts]:
    """Return what is found in the offsets of each entry that has any of its own.

    Args:
        shares: Entries that landed or redid offsets.
        evidence: What is known of the offsets.
        landed: Distinct offsets with rows, sorted like the others.
        rows: Offset of each row.
        quarantined: Distinct offsets in quarantine.
        erased: Distinct offsets of which every row was erased by decision; None without any.
        erased_rows: Offset of each row that was.
    """
    shared = both(landed, quarantined)
    arrays = {"landed": landed, "rows": rows, "quarantined": quarantined, "shared": shared}
    arrays |= {"unaccounted": evidence.unaccounted, "erased": erased or {}, "erased_rows": erased_rows or {}}
    pieces: dict[TopicIdPartition, list[tuple[int, int, int]]] = {}
    for number, share in enumerate(shares):
        for key, intervals in share.spans.items():
            pieces.setdefault(key, []).extend((number, start, end) for start, end in intervals)
    counts: dict[str, CountArray] = {name: np.zeros(len(shares), dtype=np.int64) for name in (*arrays, "untold")}
    for key, listed in pieces.items():
        numbers, starts, ends = np.array(listed, dtype=np.int64).T
        for name, by_key in arrays.items():
            np.add.at(counts[name], numbers, _between(by_key.get(key, NONE), starts, ends))
        until = np.clip(ends, starts, np.maximum(starts, evidence.earliest(*key)))
        np.add.at(counts["untold"], numbers, until - starts - _between(evidence.decided.get(key, NONE), starts, until))
    return [
        EntryCounts(share, **{name: int(values[number]) for name, values in counts.items()})
        for number, share in enumerate(shares)
        if share.spans
    ]


def _between(array: OffsetArray, starts: CountArray, ends: CountArray) -> CountArray:
    counts: CountArray = np.searchsorted(array, ends) - np.searchsorted(array, starts)
    return counts
