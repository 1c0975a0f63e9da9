"""The power is cut under a real ext4 while a stream commits and is maintained: nothing that it has told is lost. Needs root."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.power.ext4 import PowerDisk
from tests.support.power.oracle import Held, read_delta, read_iceberg
from tests.support.power.stories import TABLES, up_to
from tests.support.power.writer import TOLD
from tests.support.tables.local_tables import places

CUTS = 25 if os.environ.get("LAKEBOUND_POWER_CUTS") == "all" else 2
SEED = int(os.environ.get("LAKEBOUND_POWER_CUTS_SEED", str(time.time_ns() % 1_000_000)))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[PowerDisk]:
    try:
        made = PowerDisk(tmp_path)
    except OSError as exc:
        pytest.skip(f"no file system whose power can be cut: {exc}")
    yield made
    made.remove()


def look(format_: str, folder: Path) -> Held | None:
    at, spec = places(folder), TABLES[format_]
    if format_ == "delta":
        return read_delta(at.delta_path(spec))
    return read_iceberg(Path(at.iceberg_catalog_uri.removeprefix("sqlite:///")), spec.name)


def run_until_a_cut(disk: PowerDisk, format_: str, chance: random.Random, *options: str) -> int:
    """Stream, cut the power, and return the offset up to which the stream has told that it landed."""
    command = [sys.executable, "-m", "tests.support.power.writer", str(disk.folder / "world"), format_, *options]
    lines: list[str] = []
    wanted = chance.randint(2, 14)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            while len(told(lines)) < wanted and (line := process.stdout.readline()):
                lines.append(line)
            assert len(told(lines)) == wanted, f"the stream ended by itself: {''.join(lines)}"
            time.sleep(chance.random() * 0.1)
            disk.cut_power()
        finally:
            process.kill()
            lines += process.stdout
    disk.start_again()
    return max(told(lines))


def told(lines: list[str]) -> list[int]:
    return [int(line.removeprefix(TOLD)) for line in lines if line.startswith(TOLD)]


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_what_a_stream_has_told_is_there_after_each_cut(format_: str, disk: PowerDisk) -> None:
    chance, held = random.Random(SEED), 0
    for number in range(CUTS):
        said = run_until_a_cut(disk, format_, chance)
        found = look(format_, disk.folder / "world")
        assert found is not None and found == up_to(len(found.rows)), f"seed {SEED}, cut {number}: {found}"
        assert len(found.rows) >= max(said, held), f"seed {SEED}, cut {number}: told {said}, found {len(found.rows)}"
        held = len(found.rows)
    print(f"ext4, {format_}: {CUTS} cuts, seed {SEED}, {held} rows")


def test_without_syncs_this_disk_loses_what_was_told(disk: PowerDisk) -> None:
    said = run_until_a_cut(disk, "delta", random.Random(SEED), "without syncs")
    try:
        found = look("delta", disk.folder / "world")
    except Exception:
        return
    assert found is None or len(found.rows) < said
