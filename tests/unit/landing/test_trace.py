"""Spans of Spark and of the driver, their costs, and the picture."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from lakebound.landing.trace import _LEFT, _WIDTH, BatchSpans, Span, append_spans, read_spans, spark_spans, step_costs, timeline

PROGRESS = {
    "batchId": 3,
    "timestamp": "2026-11-22T01:00:00.100Z",
    "numInputRows": 40,
    "durationMs": {
        "addBatch": 50,
        "commitOffsets": 10,
        "getBatch": 0,
        "latestOffset": 5,
        "queryPlanning": 4,
        "triggerExecution": 80,
        "walCommit": 8,
    },
}
BEGAN_MS = 1_795_309_200_100.0


def driver(batch: int, *milliseconds: float) -> BatchSpans:
    spans = tuple(Span(step="direct_read", began_ms=BEGAN_MS + 20, milliseconds=one) for one in milliseconds)
    return BatchSpans(batch=batch, track="driver", records=40, spans=spans)


def moved(line: BatchSpans, by_ms: float) -> BatchSpans:
    """Return a line of the same steps, later."""
    spans = tuple(span.model_copy(update={"began_ms": span.began_ms + by_ms}) for span in line.spans)
    return line.model_copy(update={"spans": spans})


def test_the_steps_of_a_trigger_follow_each_other_and_account_for_all_of_it() -> None:
    found = spark_spans(PROGRESS)
    assert (found.batch, found.track, found.records) == (3, "Spark", 40)
    assert [(span.step, span.began_ms - BEGAN_MS, span.milliseconds) for span in found.spans] == [
        ("latestOffset", 0, 5),
        ("walCommit", 5, 8),
        ("getBatch", 13, 0),
        ("queryPlanning", 13, 4),
        ("addBatch", 17, 50),
        ("commitOffsets", 67, 10),
        ("other", 77, 3),
    ]


def test_lines_are_read_as_they_were_written_and_one_that_was_cut_off_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    assert read_spans(path) == []
    lines = [spark_spans(PROGRESS), driver(3, 12.5)]
    for line in lines:
        append_spans(path, line)
    with path.open("a") as file:
        file.write('{"batch": 4, "tra')
    assert read_spans(path) == lines


def test_costs_are_per_step_without_the_first_batch() -> None:
    [cost] = step_costs([driver(0, 9_000), driver(1, 10), driver(2, 30)])
    assert (cost.track, cost.step, cost.mean_ms) == ("driver", "direct_read", 20)
    assert cost.p95_ms == pytest.approx(29)
    [cost] = step_costs([driver(0, 9_000), driver(0, 10), driver(0, 30)])
    assert cost.mean_ms == 20, "its rounds count"


def test_the_picture_shows_the_last_batches_on_both_tracks() -> None:
    lines = []
    for batch in range(1, 10):
        spark, own = spark_spans({**PROGRESS, "batchId": batch}), driver(batch, 12.5)
        lines += [moved(spark, 80 * batch), moved(own, 80 * batch)]
    picture = timeline(lines)
    ET.fromstring(picture)
    assert "batch 9, addBatch: 50.0 ms" in picture
    assert "batch 4, direct_read: 12.5 ms" in picture
    assert "batch 3," not in picture
    assert "driver: direct_read, mean 12.5 ms" in picture
    ET.fromstring(timeline([]))


def test_the_picture_of_rounds_shows_the_last_ones_and_the_part_of_their_batch() -> None:
    batch = BatchSpans(batch=1, track="Spark", spans=(Span(step="addBatch", began_ms=BEGAN_MS, milliseconds=10_000),))
    picture = timeline([batch, *(moved(driver(1, 12.5), 80 * number) for number in range(100))])
    ET.fromstring(picture)
    assert picture.count("direct_read: 12.5 ms") == 6
    assert f'x="{_LEFT:.1f}" y="40" width="{_WIDTH - _LEFT - 20:.1f}"' in picture, "of ten seconds what is within them"
