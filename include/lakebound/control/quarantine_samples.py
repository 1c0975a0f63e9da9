"""A few records that went to quarantine last, by reason: for looking at. The quarantine table itself has all of them.

This is the only file of the state that holds values of records, and only where the pipeline's YAML asks for it
(``quarantine_samples``). It is private like the rest of the state, bounded, and no part of a backup.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import TypeAdapter

from lakebound.control.bounds import Count, Moment
from lakebound.control.folder import ControlFolder, read_bytes, write_text

MOST_REASONS = 20
MAX_BYTES = 128 * 1024
KEPT_SECONDS = 7 * 86_400.0
"""Older samples are dropped, and not shown."""
AHEAD_SECONDS = 60.0
"""What is later by more is from a clock that was ahead, and is dropped: else it would stay the newest."""


@dataclass(frozen=True, slots=True)
class QuarantineSample:
    """One record; every text is cut and escaped by who makes it.

    Attributes:
        reason: Why it went there, in words that hold nothing of it.
        at: When it went there, in epoch seconds.
        topic: Where it is in Kafka.
        partition: Of the topic.
        offset: In the partition.
        error: What was wrong; it may quote the record.
        key: Beginning of its key; None without one.
        value: Beginning of its value; None without one.
        value_bytes: Whole length of the value; None without one.
        headers: The first of its headers, as ``name=value, …``; None without any.
    """

    reason: str
    at: Moment
    topic: str
    partition: Count
    offset: Count
    error: str = ""
    key: str | None = None
    value: str | None = None
    value_bytes: Count | None = None
    headers: str | None = None

    @property
    def place(self) -> tuple[str, str, int, int]:
        """Tells it from others: a record may go to quarantine for two reasons, one after the other."""
        return self.reason, self.topic, self.partition, self.offset


Samples = tuple[QuarantineSample, ...]

_json = TypeAdapter(Samples)
_sample_json = TypeAdapter(QuarantineSample)


def read_samples(control: ControlFolder, now: float) -> Samples:
    """Return what was written last, without what is too old or later than now; nothing where nothing was written.

    Args:
        control: State folder of the pipeline.
        now: Epoch seconds.

    Raises:
        ValueError: The file cannot be read.
        OSError: The file is there and cannot be read.
    """
    try:
        found = _json.validate_json(read_bytes(control.quarantine_samples, 2 * MAX_BYTES))
    except FileNotFoundError:
        return ()
    return tuple(one for one in found if _is_current(one, now))


def write_samples(control: ControlFolder, samples: Iterable[QuarantineSample]) -> None:
    """Replace the file; it is not synced. Where samples are long, fewer are kept: one of each reason first, then a second one.

    Args:
        control: State folder of the pipeline.
        samples: Newest first; those of each reason stay in their order.

    Raises:
        OSError: The disk does not take it; the file is as it was.
    """
    kept, left, given = set[int](), MAX_BYTES - 2, list(samples)
    for place in _in_turns(given):
        needed = len(_sample_json.dump_json(given[place], exclude_defaults=True)) + 1
        if needed <= left:
            left -= needed
            kept.add(place)
    chosen = tuple(one for place, one in enumerate(given) if place in kept)
    write_text(control.quarantine_samples, _json.dump_json(chosen, exclude_defaults=True).decode())


def remove_samples(control: ControlFolder) -> None:
    """Remove the file where it is there.

    Raises:
        OSError: It cannot be removed.
    """
    control.quarantine_samples.unlink(missing_ok=True)


def newest_samples(samples: Iterable[QuarantineSample], per_reason: int, now: float) -> Samples:
    """Return the newest ones of each reason, newest first, of at most 20 reasons; each record once. Pure.

    Args:
        samples: In any order.
        per_reason: How many of one reason.
        now: Epoch seconds.
    """
    unlike = {one.place: one for one in sorted(samples, key=lambda one: one.at) if _is_current(one, now)}
    kept, counts = list[QuarantineSample](), Counter[str]()
    for sample in sorted(unlike.values(), key=lambda one: (-one.at, -one.offset)):
        is_known = sample.reason in counts or len(counts) < MOST_REASONS
        if is_known and counts[sample.reason] < per_reason:
            counts[sample.reason] += 1
            kept.append(sample)
    return tuple(kept)


def _is_current(sample: QuarantineSample, now: float) -> bool:
    return now - KEPT_SECONDS <= sample.at <= now + AHEAD_SECONDS


def _in_turns(samples: Iterable[QuarantineSample]) -> Iterator[int]:
    """Yield the places of the samples: of each reason the first one, then of each the second one, and so on."""
    turns, seen = defaultdict[int, list[int]](list), Counter[str]()
    for place, sample in enumerate(samples):
        turns[seen[sample.reason]].append(place)
        seen[sample.reason] += 1
    for turn in sorted(turns):
        yield from turns[turn]
