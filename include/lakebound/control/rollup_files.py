"""The files of a pipeline's rollups: a line per bucket and a file per resolution, and one file of totals.

One process writes them, that which has the pipeline's lease. A line is added when its bucket is over; of two lines of the same
time the later one counts. A file that would exceed its bound is written anew without what is old. Nothing is synced: after a
power cut lines may lack or be torn, and a line that cannot be read is left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pydantic import TypeAdapter, ValidationError

from lakebound.control.folder import ControlFolder, read_bytes, write_text
from lakebound.control.private_files import make_private_folder, open_private
from lakebound.control.rollups import RESOLUTIONS, Bucket, Resolution, Totals, latest_of_each_time, pruned, rolled_up

MAX_LINE_BYTES = 16 * 1024
"""A bucket that needs more, which takes dozens of tables, is not kept; the totals have it nevertheless."""

_BLOCK_BYTES = 128 * 1024
_BEGINNING = re.compile(rb'\{"at":(\d{1,15}),')

_bucket_json = TypeAdapter(Bucket)
_totals_json = TypeAdapter(Totals)


@dataclass(frozen=True)
class BucketsRead:
    """What a file holds.

    Attributes:
        buckets: Oldest first, each time once.
        unreadable: Lines that were left out.
    """

    buckets: list[Bucket]
    unreadable: int = 0


def rollup_file(control: ControlFolder, resolution: Resolution) -> Path:
    """Return the file of a resolution."""
    return control.rollups / f"{resolution.name}.jsonl"


def totals_file(control: ControlFolder) -> Path:
    """Return the file of the totals."""
    return control.rollups / "totals.json"


def read_buckets(control: ControlFolder, resolution: Resolution, since: float) -> list[Bucket]:
    """Return the buckets from a moment on, oldest first; the last one may not be over. Stretches without an application lack.

    Args:
        control: State folder of the pipeline.
        resolution: Length of the buckets.
        since: Epoch seconds; the bucket in which this moment lies is the first one.

    Raises:
        OSError: A file is there and cannot be read.
    """
    first = resolution.start_of(since)
    found = read_file(control, resolution, first).buckets
    place = RESOLUTIONS.index(resolution)
    if place:
        # What is not rolled up yet.
        after = found[-1].at + resolution.seconds if found else first
        found += rolled_up(read_buckets(control, RESOLUTIONS[place - 1], max(first, after)), resolution)
    return found


def read_file(control: ControlFolder, resolution: Resolution, since: float = 0.0) -> BucketsRead:
    """Return what one file has of the buckets that began at a moment or later; none where there is no file.

    Args:
        control: State folder of the pipeline.
        resolution: Whose file.
        since: Epoch seconds.

    Raises:
        OSError: The file is there and cannot be read.
    """
    try:
        with rollup_file(control, resolution).open("rb") as file:
            lines = _last_lines(file, since, 2 * resolution.max_bytes)
    except FileNotFoundError:
        return BucketsRead([])
    read = [_parsed(line) for line in lines if _may_begin_since(line, since)]
    buckets = latest_of_each_time(bucket for bucket in read if bucket is not None and bucket.at >= since)
    return BucketsRead(buckets, read.count(None))


def append_buckets(control: ControlFolder, resolution: Resolution, buckets: Sequence[Bucket], now: float) -> None:
    """Add lines; where the file would become too large, write it anew without what is old.

    Args:
        control: State folder of the pipeline.
        resolution: Of the buckets.
        buckets: Oldest first.
        now: Epoch seconds.

    Raises:
        OSError: The disk does not take them. What was written of a line is left out by readers.
    """
    lines = _lines(buckets)
    path = rollup_file(control, resolution)
    make_private_folder(path.parent)
    with open_private(path, "a+b") as file:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                lines.insert(0, b"")  # A torn line keeps to itself.
        added = b"".join(line + b"\n" for line in lines)
        if size + len(added) <= resolution.max_bytes:
            file.write(added)
            return
    rewrite_file(control, resolution, [*read_file(control, resolution).buckets, *buckets], now)


def rewrite_file(control: ControlFolder, resolution: Resolution, buckets: Iterable[Bucket], now: float) -> None:
    """Replace the file by what is kept of these buckets: the youngest, as far as they fill half of it.

    Args:
        control: State folder of the pipeline.
        resolution: Of the buckets.
        buckets: Of two of the same time the later one counts.
        now: Epoch seconds.

    Raises:
        OSError: The disk does not take it; the file is as it was.
    """
    kept: list[bytes] = []
    left = resolution.max_bytes // 2
    for line in reversed(_lines(pruned(buckets, resolution, now))):
        left -= len(line) + 1
        if left < 0:
            break
        kept.append(line)
    write_text(rollup_file(control, resolution), b"".join(line + b"\n" for line in reversed(kept)).decode())


def read_totals(control: ControlFolder) -> Totals | None:
    """Return the totals; None where there are none.

    Raises:
        ValueError: They cannot be read.
        OSError: The file is there and cannot be read.
    """
    try:
        return _totals_json.validate_json(read_bytes(totals_file(control)))
    except FileNotFoundError:
        return None


def write_totals(control: ControlFolder, totals: Totals) -> None:
    """Replace the totals.

    Raises:
        OSError: The disk does not take them; the file is as it was.
    """
    write_text(totals_file(control), _totals_json.dump_json(totals, exclude_defaults=True).decode())


def _lines(buckets: Iterable[Bucket]) -> list[bytes]:
    lines = (_bucket_json.dump_json(bucket, exclude_defaults=True) for bucket in buckets)
    return [line for line in lines if len(line) <= MAX_LINE_BYTES]


def _parsed(line: bytes) -> Bucket | None:
    try:
        return _bucket_json.validate_json(line)
    except ValidationError:
        return None


def _may_begin_since(line: bytes, since: float) -> bool:
    """Return whether a line may be of a bucket that began at a moment or later; who asks for few need not parse them all."""
    found = _BEGINNING.match(line)
    return found is None or int(found[1]) >= since


def _last_lines(file: IO[bytes], since: float, most_bytes: int) -> list[bytes]:
    """Return lines from the end of a file, at least those of buckets from a moment on, as far as so many bytes hold them."""
    size = file.seek(0, os.SEEK_END)
    length = min(_BLOCK_BYTES, most_bytes)
    while True:
        file.seek(max(0, size - length))
        lines = file.read(length).split(b"\n")
        if size <= length:
            break
        lines = lines[1:]
        if length == most_bytes:
            break
        oldest = next((bucket for line in lines if (bucket := _parsed(line)) is not None), None)
        if oldest is not None and oldest.at < since:
            break
        length = min(4 * length, most_bytes)
    return [line for line in lines if line]
