"""Where the milliseconds of a batch go: spans that Spark and the driver measured, their means, and a picture.

``lakebound run PIPELINE --trace`` writes them while it runs. Spark says how long each step of a trigger took and when the
trigger began; its steps follow each other in a fixed order (MicroBatchExecution), so their places are known, too. What lands
without Spark's planning (``lakebound_spark.stream.rounds``) is a line of its own with the same batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal
from xml.sax.saxutils import escape

import numpy as np

from lakebound.control.private_files import open_private
from lakebound.frozen import Frozen

Track = Literal["Spark", "driver"]

SPARK_STEPS = ("latestOffset", "walCommit", "getBatch", "queryPlanning", "addBatch", "commitOffsets")
"""In the order in which a trigger takes them; ``addBatch`` is where the driver works."""

PICTURED_BATCHES = 6
_COLOURS = ("#1b6ca8", "#d1495b", "#66a182", "#edae49", "#8d6a9f", "#5c8a8a", "#b56576", "#7a8450")
_WIDTH, _LEFT, _ROW, _TOP = 1200, 70, 46, 40


class Span(Frozen):
    """A step: when it began (epoch milliseconds), and how long it took."""

    step: str
    began_ms: float
    milliseconds: float


class BatchSpans(Frozen):
    """The spans of one batch, or of a round of it, on one track; a line of the trace's file."""

    batch: int
    track: Track
    records: int = 0
    spans: tuple[Span, ...]


class StepCost(Frozen):
    """What a step takes per batch, in milliseconds."""

    track: Track
    step: str
    mean_ms: float
    p95_ms: float


def spark_spans(progress: Mapping[str, Any]) -> BatchSpans:
    """Return the steps of the trigger that a query's progress tells of, and ``other``: what is in none of them."""
    durations: Mapping[str, float] = progress["durationMs"]
    began_ms = datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00")).timestamp() * 1000
    spans, at = [], began_ms
    for step in SPARK_STEPS:
        if step in durations:
            spans.append(Span(step=step, began_ms=at, milliseconds=durations[step]))
            at += durations[step]
    rest = began_ms + durations.get("triggerExecution", 0) - at
    if rest > 0:
        spans.append(Span(step="other", began_ms=at, milliseconds=rest))
    return BatchSpans(batch=progress["batchId"], track="Spark", records=progress["numInputRows"], spans=tuple(spans))


def append_spans(path: Path, spans: BatchSpans) -> None:
    """Write one line."""
    with open_private(path, "a") as file:
        file.write(spans.model_dump_json() + "\n")


def read_spans(path: Path) -> list[BatchSpans]:
    """Return all lines; none where there is no file. An incomplete last line is skipped."""
    if not path.exists():
        return []
    return [BatchSpans.model_validate_json(line) for line in path.read_text().split("\n")[:-1]]


def step_costs(lines: Iterable[BatchSpans]) -> list[StepCost]:
    """Return what each step takes per batch, Spark's first; the first batch of a query, which compiles, does not count."""
    found: defaultdict[tuple[Track, str], list[float]] = defaultdict(list)
    before: dict[Track, int] = {}
    for line in lines:
        if line.batch > 0 or before.get(line.track) == line.batch:
            for span in line.spans:
                found[line.track, span.step].append(span.milliseconds)
        before[line.track] = line.batch
    return [
        StepCost(track=track, step=step, mean_ms=float(np.mean(values)), p95_ms=float(np.percentile(values, 95)))
        for (track, step), values in sorted(found.items(), key=lambda item: item[0][0])
    ]


def timeline(lines: Sequence[BatchSpans]) -> str:
    """Return the last batches as SVG: a row for Spark's steps, and one for what the driver does within ``addBatch``."""
    last = [line for line in lines if line.track == "driver" and line.spans][-PICTURED_BATCHES:]
    costs = {(cost.track, cost.step): cost for cost in step_costs(lines)}
    colours = {key: _COLOURS[number % len(_COLOURS)] for number, key in enumerate(costs)}
    began = min((span.began_ms for line in last for span in line.spans), default=0.0)
    ended = max((span.began_ms + span.milliseconds for line in last for span in line.spans), default=1.0)
    scale = (_WIDTH - _LEFT - 20) / max(1.0, ended - began)
    rows = {"Spark": _TOP, "driver": _TOP + _ROW}
    height = _TOP + 2 * _ROW + 40 + 18 * len(costs)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        f'<text x="10" y="20" font-size="14">Batches {last[0].batch if last else 0} to {last[-1].batch if last else 0}: '
        f"{ended - began:,.0f} ms</text>",
        *(f'<text x="10" y="{y + 20}">{escape(track)}</text>' for track, y in rows.items()),
    ]
    for line in [*(line for line in lines if line.track == "Spark"), *last]:
        for span in line.spans:
            # A batch with rounds began long before them.
            left, right = max(span.began_ms, began), min(span.began_ms + span.milliseconds, ended)
            if left > right:
                continue
            x, width = _LEFT + (left - began) * scale, max(0.5, (right - left) * scale)
            colour = colours.get((line.track, span.step), "#999")
            title = f"batch {line.batch}, {span.step}: {span.milliseconds:.1f} ms"
            parts.append(f'<rect x="{x:.1f}" y="{rows[line.track]}" width="{width:.1f}" height="30" fill="{colour}">'
                         f"<title>{escape(title)}</title></rect>")  # fmt: skip
    for number, (key, cost) in enumerate(costs.items()):
        y = _TOP + 2 * _ROW + 20 + 18 * number
        parts.append(f'<rect x="{_LEFT}" y="{y - 10}" width="12" height="12" fill="{colours[key]}"/>')
        said = f"{cost.track}: {cost.step}, mean {cost.mean_ms:.1f} ms, p95 {cost.p95_ms:.1f} ms"
        parts.append(f'<text x="{_LEFT + 20}" y="{y}">{escape(said)}</text>')
    return "\n".join([*parts, "</svg>", ""])
