"""Which lane made batches: direct (the driver reads and decodes), driver (Spark does), or cluster (executors write, too)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from lakebound.control.folder import ControlFolder
from lakebound.control.rollup_files import read_buckets
from lakebound.control.rollups import TEN_SECONDS, Bucket


def lanes_between(control: ControlFolder, from_ms: float, until_ms: float) -> dict[str, int]:
    """Return how many batches each lane made, of those ten seconds of the rollups that lie wholly in a time."""
    return count_lanes(read_buckets(control, TEN_SECONDS, from_ms / 1000), from_ms, until_ms)


def count_lanes(buckets: Iterable[Bucket], from_ms: float, until_ms: float) -> dict[str, int]:
    """Return the batches by lane, most first."""
    batches: Counter[str] = Counter()
    for bucket in buckets:
        if from_ms <= bucket.at * 1000 and (bucket.at + TEN_SECONDS.seconds) * 1000 <= until_ms:
            batches.update({lane: durations.count for lane, durations in bucket.figures.batches.items()})
    return dict(batches.most_common())
