"""What it costs that commits outlast a power cut: freshness and CPU with syncing and without, in turns. Writes a page."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

from compare import Load, Run, measure
from kept_runs import DOCS
from running import own_broker

LOAD = Load(2000, 2, 180)
WITHOUT = Path(__file__).parent / "without_syncing"
FRESHNESS = ("0ms", "250ms", "1s")


@contextmanager
def on_path(folder: Path | None) -> Iterator[None]:
    """Put a folder on the PYTHONPATH of what is started meanwhile."""
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(part for part in (str(folder or ""), before) if part)
    try:
        yield
    finally:
        os.environ["PYTHONPATH"] = before


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--warm-up-seconds", type=float, default=30)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--page", type=Path, default=DOCS / "benchmarks" / "syncing.md")
    args = parser.parse_args()
    lines = []
    with own_broker() as (base, broker):
        for number, freshness in enumerate(FRESHNESS):
            for syncs in (True, False):
                with on_path(None if syncs else WITHOUT):
                    run = measure(f"lakebound:both:{freshness}", LOAD, 2 * number + syncs, args, base, broker)
                lines += list(_rows(freshness, syncs, run))
                print(lines[-1], flush=True)
    args.page.write_text(_page(lines, args.seconds))


def _rows(freshness: str, syncs: bool, run: Run) -> Iterator[str]:
    for table, seen in sorted(run.tables.items()):
        cores = run.cpu_seconds / run.seconds
        p50, p99 = (f"{seen[name]:.0f}" for name in ("p50_ms", "p99_ms"))
        yield f"| `{freshness}` | {table} | {'yes' if syncs else 'no'} | {p50} | {p99} | {cores:.2f} |"


def _page(lines: list[str], seconds: float) -> str:
    return f"""# What syncing costs

Made by `make bench-syncing` on {date.today()}: {LOAD.rate} records per second into a Delta and an Iceberg table at once,
{seconds:.0f} s for each line, with commits that wait for the disk and, for comparison only, without. Milliseconds until a
record is visible; cores used by the application, for both tables.

| freshness | table | syncs | p50 ms | p99 ms | cores |
|---|---|---|---|---|---|
{chr(10).join(lines)}
"""


if __name__ == "__main__":
    main()
