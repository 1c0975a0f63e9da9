"""From figures over time to the lines of charts. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from lakebound.control.rollups import Bucket, Figures
from lakebound.operations.maintenance.health_history import HealthReading
from lakebound_airflow.page.charts.model import Chart, Line, Unit

MOST_LINES = 8
_SHORTEST_SECONDS = 10.0
"""By which a sum is divided at least: what the present bucket has is up to ten seconds old."""

ByTime = Mapping[int, Figures]


def charts_of(buckets: Iterable[Bucket], readings: Sequence[HealthReading], times: Sequence[int], now: float) -> list[Chart]:
    """Return the charts; one without any value is left out.

    Args:
        buckets: One per point at most, each beginning when its point does.
        readings: Of the tables' health, oldest first.
        times: When each point begins, in epoch seconds.
        now: Epoch seconds.
    """
    found = {bucket.at: bucket.figures for bucket in buckets}
    step_seconds = times[1] - times[0]
    charts = [
        _freshness(found, times),
        Chart("lag", "Lag: records that wait in Kafka", "count", (_line("lag", found, times, lambda one: one.lag_records),)),
        _rates(found, times, step_seconds, now),
        _batches(found, times),
        _steps(found, times),
        Chart("bad", "Share of records that went to quarantine", "share", (_line("bad", found, times, _bad_share),)),
        _reasons(found, times),
        _cores(found, times, step_seconds, now),
        Chart("cost", "CPU seconds per million records", "seconds", (_line("CPU seconds", found, times, _cost),)),
        _health("files", "Live files", "count", readings, times, lambda one: float(one.files)),
        _health("bytes", "Live bytes", "bytes", readings, times, lambda one: float(one.size_bytes)),
    ]
    kept = [_with_values(chart) for chart in charts]
    return [chart for chart in kept if chart.lines]


def _freshness(found: ByTime, times: Sequence[int]) -> Chart:
    lines = tuple(_line(f"p{share}", found, times, _quantile(share)) for share in (50, 90, 99))
    return Chart("freshness", "Freshness: age of records as they landed", "seconds", lines, has_band=True)


def _quantile(percent: int) -> Callable[[Figures], float | None]:
    return lambda figures: figures.freshness.quantile(percent / 100)


def _bad_share(figures: Figures) -> float | None:
    return figures.quarantined / figures.read if figures.read else None


def _cost(figures: Figures) -> float | None:
    return figures.cpu_seconds_per_million


def _rates(found: ByTime, times: Sequence[int], step_seconds: int, now: float) -> Chart:
    def rate(count: int, at: int) -> float:
        return count / max(_SHORTEST_SECONDS, min(step_seconds, now - at))

    rows: Counter[str] = Counter()
    for figures in found.values():
        rows.update({table: landed.rows for table, landed in figures.tables.items()})
    lines = [Line("records read", tuple(rate(found[at].read, at) if at in found else None for at in times))]
    for table, _ in rows.most_common(MOST_LINES - 1):
        landed = ((found[at].tables.get(table), at) if at in found else (None, None) for at in times)
        values = tuple(None if at is None else rate(figures.rows if figures is not None else 0, at) for figures, at in landed)
        lines.append(Line(f"rows in {table}", values))
    return Chart("rows", "Records and rows per second", "per_second", tuple(lines))


def _cores(found: ByTime, times: Sequence[int], step_seconds: int, now: float) -> Chart:
    """Return the cores in use on average. What nobody counted is a gap: an application writes it when ten seconds are over."""
    seconds = ((found[at].cpu_seconds if at in found else 0.0, at) for at in times)
    values = (used / max(_SHORTEST_SECONDS, min(step_seconds, now - at)) if used else None for used, at in seconds)
    return Chart("cpu", "CPU cores in use", "cores", (Line("cores", tuple(values)),))


def _batches(found: ByTime, times: Sequence[int]) -> Chart:
    lanes = sorted({lane for figures in found.values() for lane in figures.batches})

    def quantile(lane: str, share: float) -> Callable[[Figures], float | None]:
        return lambda figures: figures.batches[lane].quantile(share) if lane in figures.batches else None

    lines = (
        _line(f"{lane} p{round(100 * share)}", found, times, quantile(lane, share)) for lane in lanes for share in (0.5, 0.99)
    )
    return Chart("batches", "Duration of batches, by lane", "seconds", tuple(lines))


def _steps(found: ByTime, times: Sequence[int]) -> Chart:
    spent: defaultdict[tuple[str, str], float] = defaultdict(float)
    for figures in found.values():
        for lane, steps in figures.steps.items():
            for step, seconds in steps.items():
                spent[lane, step] += seconds

    def mean(lane: str, step: str) -> Callable[[Figures], float | None]:
        def of(figures: Figures) -> float | None:
            batches = figures.batches[lane].count if lane in figures.batches else 0
            return figures.steps.get(lane, {}).get(step, 0.0) / batches if batches else None

        return of

    chosen = sorted(sorted(spent, key=lambda key: -spent[key])[:MOST_LINES])
    lines = (_line(f"{lane}: {step}", found, times, mean(lane, step)) for lane, step in chosen)
    return Chart("steps", "Mean duration of a batch's steps, by lane", "seconds", tuple(lines))


def _reasons(found: ByTime, times: Sequence[int]) -> Chart:
    counts: Counter[str] = Counter()
    for figures in found.values():
        counts.update(figures.reasons)
    lines = (
        _line(reason, found, times, lambda one, reason=reason: one.reasons.get(reason, 0))  # type: ignore[misc]
        for reason, _ in counts.most_common(MOST_LINES)
    )
    return Chart("reasons", "Records in quarantine, by reason", "count", tuple(lines))


def _health(
    chart_id: str,
    title: str,
    unit: Unit,
    readings: Sequence[HealthReading],
    times: Sequence[int],
    value: Callable[[HealthReading], float],
) -> Chart:
    """Return a chart of the latest reading at each point: between two looks at a table, the earlier one stands."""
    step_seconds = times[1] - times[0]
    tables = [table for table, _ in Counter(reading.table for reading in readings).most_common(MOST_LINES)]
    lines = []
    for table in sorted(tables):
        own = [(reading.at_ms / 1000, value(reading)) for reading in readings if reading.table == table]
        values: list[float | None] = []
        place, latest = 0, None
        for at in times:
            while place < len(own) and own[place][0] < at + step_seconds:
                latest = own[place][1]
                place += 1
            values.append(latest)
        lines.append(Line(table, tuple(values)))
    return Chart(chart_id, title, unit, tuple(lines))


def _line(name: str, found: ByTime, times: Sequence[int], value: Callable[[Figures], float | None]) -> Line:
    return Line(name, tuple(value(found[at]) if at in found else None for at in times))


def _with_values(chart: Chart) -> Chart:
    lines = tuple(line for line in chart.lines if any(value is not None for value in line.values))
    return Chart(chart.id, chart.title, chart.unit, lines, chart.has_band and len(lines) == len(chart.lines))
