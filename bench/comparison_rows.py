"""One row of the comparison: medians of the repeats of one arm, of one of its tables. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from arm_names import Work, parse
from generator import values
from lane_shares import lanes_told, syncs_told
from work import kept_share

Record = dict[str, Any]
FIGURES = ("mean_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms")


@dataclass(frozen=True)
class Row:
    """Medians of one arm's table under one load, over its repeats."""

    arm: str
    table: str
    load: tuple[int, int, int]
    figures: dict[str, float]
    lowest_mean_ms: float
    highest_mean_ms: float
    commits_per_minute: float
    files_per_minute: float
    kilobytes_per_file: float
    cpu_seconds_per_million: float
    cores: float
    peak_rss_megabytes: float
    seen_share: float
    repeats: int
    lanes: str
    syncs: str
    differing: int

    @property
    def work(self) -> Work:
        """What is done with the records."""
        return parse(self.arm).work


def rows_of(records: Sequence[Record]) -> list[Row]:
    """Return one row per load, arm and table."""
    groups: dict[tuple[tuple[int, int, int], str, str], list[Record]] = {}
    for record in records:
        load = (record["load"]["rate"], record["load"]["partitions"], record["load"]["record_bytes"])
        for table in record["tables"]:
            groups.setdefault((load, record["arm"], table), []).append(record)
    return [_row(load, arm, table, group) for (load, arm, table), group in groups.items()]


def _row(load: tuple[int, int, int], arm: str, table: str, group: list[Record]) -> Row:
    def median(figure: Any) -> float:
        return statistics.median(figure(record) for record in group)

    def of_table(name: str) -> float:
        return median(lambda record: record["tables"][table][name])

    means = [record["tables"][table]["mean_ms"] for record in group]
    work = parse(arm).work
    share = kept_share(work, values(load[2], dirty=work == "dirty"))
    return Row(
        arm,
        table,
        load,
        {name: of_table(name) for name in FIGURES},
        min(means),
        max(means),
        median(lambda r: r["tables"][table]["commits"] / r["seconds"] * 60),
        median(lambda r: r["tables"][table]["files"] / r["seconds"] * 60),
        median(lambda r: r["tables"][table]["bytes"] / r["tables"][table]["files"] / 1000),
        median(lambda r: r["cpu_seconds"] / (load[0] * r["seconds"]) * 1e6),
        median(lambda r: r["cpu_seconds"] / r["seconds"]),
        median(lambda r: r["peak_rss_megabytes"]),
        median(lambda r: r["tables"][table]["rows"] / (load[0] * r["seconds"] * share)),
        len(group),
        lanes_told(record.get("lanes", {}) for record in group),
        syncs_told(record.get("syncs_per_second") for record in group),
        sum(check["missing"] + check["surplus"] for r in group if (check := r.get("checks", {}).get(table))),
    )
