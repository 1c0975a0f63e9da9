"""When a disk is too full: by bytes, by share, by files, and by the minutes that are left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakebound.control.disks import FileSystem, file_systems, in_words, places_written
from lakebound.inspection.disk_look import look_at_disks
from lakebound.inspection.disk_space import WINDOW_SECONDS, DiskReading, judged, minutes_left, with_readings
from lakebound.settings import load_settings
from lakebound.spec.disks import DisksSpec

GB, NOW = 1_000_000_000, 1_700_000_000.0
DATA = FileSystem(Path("/data"), ("tables",), size_bytes=500 * GB, free_bytes=200 * GB, files=1_000_000, free_files=900_000)


def readings(*free: tuple[float, float], mount: str = "/data") -> list[DiskReading]:
    """Readings of so many minutes ago with so many gigabytes free."""
    return [DiskReading(at=NOW - minutes * 60, mount=mount, free_bytes=int(left * GB)) for minutes, left in free]


@pytest.mark.parametrize(
    ("disk", "level"),
    [
        (DATA, None),
        (replace(DATA, free_bytes=9 * GB), "warning"),
        (replace(DATA, free_bytes=2 * GB), "critical"),
        (replace(DATA, free_bytes=0), "critical"),
        (replace(DATA, size_bytes=8 * GB, free_bytes=4 * GB), None),
        (replace(DATA, size_bytes=8 * GB, free_bytes=GB // 2), "warning"),
        (replace(DATA, size_bytes=20_000 * GB, free_bytes=100 * GB), None),
        (replace(DATA, free_files=90_000), "warning"),
        (replace(DATA, free_files=0), "critical"),
        (replace(DATA, files=0, free_files=0), None),
    ],
    ids=[
        "room",
        "little",
        "very little",
        "none",
        "small disk",
        "small and full",
        "large disk",
        "few files",
        "no files",
        "any files",
    ],
)
def test_what_is_free(disk: FileSystem, level: str | None) -> None:
    assert judged(disk, [], DisksSpec(), NOW).level == level


@pytest.mark.parametrize(
    ("before", "minutes", "level"),
    [
        (readings(), None, None),
        (readings((9, 300)), None, None),
        (readings((20, 220)), 200, "warning"),
        (readings((20, 400)), 20, "critical"),
        (readings((60, 202)), 6000, None),
        (readings((60, 230), (20, 800)), 400, None),
        (readings((20, 150)), None, None),
        (readings((20, 200)), None, None),
        (readings((20, 220), mount="/other"), None, None),
        (readings((200, 2000)), None, None),
    ],
    ids=["none", "too short", "fast", "faster", "slow", "a burst", "emptier", "the same", "another disk", "too old"],
)
def test_how_long_it_lasts(before: list[DiskReading], minutes: float | None, level: str | None) -> None:
    found = judged(DATA, before, DisksSpec(), NOW)
    assert found.minutes_left == (None if minutes is None else pytest.approx(minutes))
    assert found.level == level


def test_a_disk_that_fills_steadily_is_told_before_it_is_full() -> None:
    before: tuple[DiskReading, ...] = ()
    told: dict[str, float] = {}
    for minute in range(2000):
        disk = replace(DATA, free_bytes=max(0, 200 * GB - minute * GB // 10))
        level = judged(disk, before, DisksSpec(), NOW + minute * 60).level
        before = with_readings(before, [disk], NOW + minute * 60)
        if level is not None:
            told.setdefault(level, disk.free_bytes / (GB / 10))
    assert told["warning"] == pytest.approx(240, abs=2) and told["critical"] == pytest.approx(30, abs=2), told


def test_readings_stay_few_whoever_looks_how_often() -> None:
    kept: tuple[DiskReading, ...] = ()
    for second in range(0, 20_000, 7):
        kept = with_readings(kept, [DATA, replace(DATA, mount=Path("/"))], NOW + second)
    assert len(kept) <= 2 * (WINDOW_SECONDS / 55 + 3)
    assert with_readings(kept, [DATA], NOW - 50_000) == (
        DiskReading(at=NOW - 50_000, mount="/data", free_bytes=DATA.free_bytes),
    ), "a clock that was set back"
    assert minutes_left(Path("/data"), 0, readings((20, 100)), NOW) == 0


def test_each_file_system_is_looked_at_once_and_named_with_all_that_lies_on_it(tmp_path: Path) -> None:
    settings = load_settings({"LAKEBOUND_HOME": str(tmp_path / "not there yet")})
    places = places_written(settings, {"AIRFLOW_HOME": str(tmp_path / "airflow"), "SPARK_LOCAL_DIRS": "/proc,/tmp"})
    disks, silent = file_systems(places)
    assert silent == []
    on = {use: disk.mount for disk in disks for use in disk.uses}
    assert set(on) == set(places) and len({on["state"], on["tables"], on["Airflow's logs"]}) == 1
    assert on["scratch"] == Path("/proc") != on["state"]
    assert len({disk.mount for disk in disks}) == len(disks) == 2


def test_a_look_is_remembered_only_when_it_is_to_be(tmp_path: Path) -> None:
    settings = load_settings({"LAKEBOUND_HOME": str(tmp_path)})
    states, silent = look_at_disks(settings, DisksSpec(), NOW, remember=False)
    assert states and silent == [] and list(tmp_path.iterdir()) == []
    look_at_disks(settings, DisksSpec(), NOW, remember=True)
    (tmp_path / "alerts" / "disks.json").write_text('{"readings": [{"at": 1')
    assert look_at_disks(settings, DisksSpec(), NOW, remember=True)[1] == [], "a torn file is written again"


def test_a_disk_in_words() -> None:
    assert str(DATA) == "/data (tables): 200 GB of 500 GB free (40%)"
    few = replace(DATA, free_files=1200)
    assert str(few) == "/data (tables): 200 GB of 500 GB free (40%), and room for 1,200 of 1,000,000 files"
    assert [in_words(size) for size in (0, 999, 1500, 2.5e12)] == ["0 B", "999 B", "1.5 kB", "2.5 TB"]
    filling = judged(DATA, readings((20, 220)), DisksSpec(), NOW)
    assert str(filling).endswith(", full in 3 hours at this rate")
