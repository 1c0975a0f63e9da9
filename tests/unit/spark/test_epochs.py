"""What is read of Spark's progress at an epoch's end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lakebound_spark.batch.targets import Counts
from lakebound_spark.real_time.epochs import counts_of, epoch_of

PROGRESS: dict[str, Any] = {
    "batchId": 3,
    "durationMs": {"triggerExecution": 5740},
    "sources": [{"startOffset": {"src": {"0": 5}}, "endOffset": {"src": {"0": 9, "1": 4}}}],
    "observedMetrics": {
        "lakebound_read": {"read": 8, "oldest_ms": 10, "newest_ms": 20},
        "lakebound_sent": {"quarantined": 1, "rows": 5},
    },
}


def test_an_epoch_is_read_of_its_progress() -> None:
    epoch = epoch_of(json.dumps(PROGRESS))
    assert (epoch.number, epoch.end, epoch.seconds) == (3, {"src": {0: 9, 1: 4}}, 5.74)
    assert (epoch.counts, epoch.timestamps_ms) == (Counts(read=8, filtered=2, landed=5, quarantined=1, rows=5), (10, 20))


def test_counts_of_a_target_that_had_some_of_the_records_are_its_own() -> None:
    metrics = {
        "lakebound_read": {**PROGRESS["observedMetrics"]["lakebound_read"], "read topic:a b.c": 4},
        "lakebound_sent": {"quarantined": 1, "rows": 5, "quarantined topic:a b.c": 0, "rows topic:a b.c": 3},
    }
    epoch = epoch_of(json.dumps({**PROGRESS, "observedMetrics": metrics}))
    assert epoch.counts == Counts(read=8, filtered=2, landed=5, quarantined=1, rows=5)
    assert epoch.counts_of_targets == {"topic:a b.c": Counts(read=4, filtered=1, landed=3, rows=3)}


def test_an_epoch_without_records_has_no_times() -> None:
    metrics = {"lakebound_read": {"read": 0, "oldest_ms": None, "newest_ms": None}}
    epoch = epoch_of(json.dumps({**PROGRESS, "observedMetrics": metrics}))
    assert (epoch.counts, epoch.timestamps_ms) == (Counts(), None)


@pytest.mark.parametrize("changes", [{"sources": []}, {"sources": [{}]}, {"durationMs": {}}, {"batchId": None}])
def test_another_progress_is_an_error(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"epoch|unpack"):
        epoch_of(json.dumps({**PROGRESS, **changes}))


def test_records_never_count_twice() -> None:
    for read, bad, rows in ((10, 2, 30), (10, 12, 3), (0, 0, 0), (5, 0, 2)):
        counts = counts_of(read, bad, rows)
        assert counts.read == counts.filtered + counts.landed + counts.quarantined
        assert min(counts.filtered, counts.landed, counts.quarantined) >= 0
