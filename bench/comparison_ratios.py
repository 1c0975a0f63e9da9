"""The ratios that the project is held to: Lakebound's figures ÷ those of a peer. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from arm_names import WORKS, Work, parse
from comparison_rows import Record, Row
from drain_page import ratio

MAIN_RATE, HIGH_RATE = 2000, 20000
_OWN = "lakebound:iceberg:0ms"
_TARGETS = {"encode": "≤ 0.8; CPU ≤ 1.0", "enrich": "≤ 0.9", "dirty": "≤ 0.6", "avro": "≤ 0.5"}
"""Of pipelines at the main rate, by what is done with the records."""
_OTHER_FORMATS: tuple[Work, ...] = ("avro", "protobuf")


def interpolated(points: Sequence[tuple[float, float]], x: float) -> float | None:
    """Return y at x on the line through the points; None outside of them (with 5 % of grace)."""
    ordered = sorted(points)
    if not ordered or x < 0.95 * ordered[0][0] or x > 1.05 * ordered[-1][0]:
        return None
    x = min(max(x, ordered[0][0]), ordered[-1][0])
    for (x0, y0), (x1, y1) in pairwise(ordered):
        if x0 <= x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return ordered[0][1]


def targets(rows: Sequence[Row]) -> list[str]:
    """Return the lines of the table of ratios, with a transform first; a line whose arms were not run is left out."""
    lines = ["| what | measured ÷ peer | target |", "|---|---|---|", *_same_work(rows), *_against_json(rows)]
    rows = [row for row in rows if row.work == "plain" and parse(row.arm).mark != "spark"]

    def get(arm: str, table: str, rate: int = MAIN_RATE) -> Row | None:
        return next((row for row in _of(rows, arm, rate) if (row.arm, row.table) == (arm, table)), None)

    own, both = get("lakebound:iceberg:0ms", "iceberg"), [get("lakebound:both:0ms", name) for name in ("delta", "iceberg")]
    slower = max((row for row in both if row is not None), key=lambda row: row.figures["mean_ms"], default=None)
    high, flink = get("lakebound:iceberg:0ms", "iceberg", HIGH_RATE), _best_flink(rows, MAIN_RATE)
    named = [
        ("one Iceberg table, 2,000/s, against Flink at its best interval", _ratios(own, flink), "≤ 0.8"),
        ("the same at 20,000/s", _ratios(high, _best_flink(rows, HIGH_RATE)), "≤ 1.0"),
        ("Delta and Iceberg both (the slower), 2,000/s, against Flink writing Iceberg only", _ratios(slower, flink), "≤ 1.2"),
        ("Delta, 2,000/s, against plain Spark → Delta with defaults",
         _ratios(get("lakebound:delta:0ms", "delta"), get("spark:delta", "delta")), "≤ 0.05"),
    ]  # fmt: skip
    for what, name, target in (("CPU s per million rows", "cpu_seconds_per_million", "≤ 1.0"),
                               ("files per minute", "files_per_minute", "≤ 0.5")):  # fmt: skip
        named.append((f"{what}, 2,000/s, against Flink at the same mean freshness", _at_flinks_best(rows, name), target))
    return lines + [f"| {what} | {said} | {target} |" for what, said, target in named if said is not None]


def _ratios(own: Row | None, peer: Row | None) -> str | None:
    if own is None or peer is None:
        return None
    mean, p99 = (f"{own.figures[name] / peer.figures[name]:#.2g}".rstrip(".") for name in ("mean_ms", "p99_ms"))
    return f"mean {mean}, p99 {p99} ({peer.arm})"


def _same_work(rows: Sequence[Row]) -> list[str]:
    """Return the lines about one Iceberg table, against Flink that does the same work at its best interval."""
    lines = []
    for work in WORKS[:-1]:
        for rate in (MAIN_RATE, HIGH_RATE):
            chosen = [row for row in rows if row.work == work and parse(row.arm).mark != "spark"]
            peer = _best_flink(chosen, rate)
            if peer is None:
                continue
            target = _TARGETS.get(work, "") if rate == MAIN_RATE else "≤ 1.0"
            for own in sorted(_of(chosen, "lakebound:iceberg:", rate), key=lambda row: row.figures["mean_ms"]):
                cost = own.cpu_seconds_per_million / peer.cpu_seconds_per_million
                freshness = parse(own.arm).words[1]
                what = f"`{work}` at `{freshness}`, one Iceberg table, {rate:,}/s, against Flink with the same work"
                lines.append(f"| {what} | {_ratios(own, peer)}; CPU s per million {cost:.2f} | {target} |")
    return lines


def _against_json(rows: Sequence[Row]) -> list[str]:
    """Return the lines about other formats of values, against the same fields in JSON."""
    lines = []
    for work in _OTHER_FORMATS:
        for rate in (MAIN_RATE, HIGH_RATE):
            found = {row.arm: row for row in _of(rows, _OWN, rate)}
            json, own = found.get(_OWN), found.get(f"{_OWN}:{work}")
            target = "≤ 1.1" if (work, rate) == ("avro", MAIN_RATE) else ""
            if json is not None and own is not None:
                cost = own.cpu_seconds_per_million / json.cpu_seconds_per_million
                what = f"`{work}` at `0ms`, one Iceberg table, {rate:,}/s, against the same fields in JSON"
                lines.append(f"| {what} | {_ratios(own, json)}; CPU s per million {cost:.2f} | {target} |")
    return lines


def drain_targets(drained: list[Record]) -> list[str]:
    """Return the table's lines about a backlog."""
    targets_of = {"avro": "≥ 0.7"}
    named = [
        *((f"backlog drain with `{work}`, rows/s, one Iceberg table, against Flink with the same work",
           ratio(drained, f"lakebound:iceberg:0ms:{work}"), targets_of.get(work, "≥ 1.0")) for work in WORKS[:-1]),
        ("backlog drain, rows/s, one Iceberg table, against Flink", ratio(drained, "lakebound:iceberg:0ms"), "≥ 1.0"),
        ("the same, Delta and Iceberg both, against Flink writing Iceberg only", ratio(drained, "lakebound:both:0ms"), ""),
    ]  # fmt: skip
    return [f"| {what} | {said} | {target} |" for what, said, target in named if said is not None]


def steady_targets(runs: Sequence[Record]) -> list[str]:
    """Return the table's lines about one stream that runs long beside maintenance."""
    lines = []
    for run in runs:
        page = f"[`{run['freshness']}`](benchmarks/steady-{run['freshness']}.md)"
        ratios = ", ".join(f"{one['p99_ms'] / one['p50_ms']:.2f} ({name})" for name, one in run["tables"].items())
        lines.append(f"| p99 ÷ p50 over {run['seconds'] / 60:g} minutes beside maintenance, {page} | {ratios} | ≤ 2.5 |")
        costs = [(name, one["commit_ms"].get("100"), one["commit_ms"].get("10000")) for name, one in run["tables"].items()]
        ratios = ", ".join(f"{late / early:.2f} ({name})" for name, early, late in costs if early and late)
        if ratios:
            lines.append(f"| the 10,000th commit against the 100th, {page} | {ratios} | as cheap |")
    return lines


def _of(rows: Sequence[Row], arms: str, rate: int) -> list[Row]:
    """Return the rows whose arm's name begins so, under the load that the targets speak of, or the same at another rate."""
    return [row for row in rows if row.load == (rate, 2, 180) and row.arm.startswith(arms)]


def _best_flink(rows: Sequence[Row], rate: int) -> Row | None:
    return min(_of(rows, "flink:", rate), key=lambda row: row.figures["mean_ms"], default=None)


def _at_flinks_best(rows: Sequence[Row], name: str) -> str | None:
    """Return Lakebound's cost ÷ Flink's at the mean freshness of Flink's best interval, between its own intervals."""
    peer = _best_flink(rows, MAIN_RATE)
    if peer is None:
        return None
    points = [(row.figures["mean_ms"], getattr(row, name)) for row in _of(rows, "lakebound:iceberg:", MAIN_RATE)]
    own = interpolated(points, peer.figures["mean_ms"])
    cost = getattr(peer, name)
    return None if own is None else f"{own / cost:.2f} ({own:,.0f} ÷ {cost:,.0f}, {peer.arm})"
