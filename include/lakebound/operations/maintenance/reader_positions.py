"""What the Spark checkpoint of a streaming reader says: each format knows where in it a reader of its tables stands."""

from __future__ import annotations

import errno
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lakebound.errors import LakeboundError
from lakebound.landing.checkpoint.log_files import OffsetsFile, parse_commit, parse_offsets
from lakebound.spec.maintenance import ReaderSpec
from lakebound.spec.named_files import UnusableFileError, read_bounded

Sources = Sequence[dict[str, Any] | None]
"""The offset of each source of a query; None for one without an offset."""

_READINGS = 5


class ReaderUnreadableError(LakeboundError):
    """Where a registered reader stands cannot be learned."""

    def __init__(self, reader: str, checkpoint: Path, reason: str) -> None:
        super().__init__(
            f"reader {reader!r}: {reason} (checkpoint {checkpoint}); nothing that it may need is removed until the checkpoint "
            f"is repaired or the reader is removed from maintenance.readers"
        )


def newest_finished(reader: ReaderSpec, checkpoint: Path) -> tuple[int, Sources]:
    """Return the newest finished batch, and the offset of each source at its end."""
    for reading in range(1, _READINGS + 1):
        try:
            batch = _newest(checkpoint / "commits")
            if batch is None:
                raise ReaderUnreadableError(reader.name, checkpoint, "it has finished no batch yet, so it may need everything")
            commit = parse_commit(batch, read_file(checkpoint / "commits" / str(batch)))
            offsets = parse_offsets(batch, read_file(checkpoint / "offsets" / str(batch)))
        except OSError as exc:
            # The query goes on meanwhile, and deletes the files of old batches.
            if reading == _READINGS:
                reason = f"{exc.filename or checkpoint}: {exc.strerror or exc}"
                raise ReaderUnreadableError(reader.name, checkpoint, reason) from exc
            continue
        flaw = commit.flaw or offsets.flaw
        if flaw is None:
            return batch, _offsets_of(offsets)
        if reading == _READINGS:
            raise ReaderUnreadableError(reader.name, checkpoint, f"the files of its batch {batch} cannot be read: {flaw}")
    raise AssertionError("the last reading returns or raises")


def begin_of(checkpoint: Path, batch: int) -> Sources:
    """Return the offsets at which a finished batch began; empty where that cannot be known.

    It is the end of the newest batch before it whose file is there: who tracks progress asynchronously leaves some out. Where
    none is there, and the next batch has begun, Spark starts with that one, and so at this one's end.
    """
    folder = checkpoint / "offsets"
    try:
        numbers = {int(path.name) for path in folder.iterdir() if path.name.isdecimal()}
        found = max((number for number in numbers if number < batch), default=batch if batch + 1 in numbers else None)
        return _offsets_of(parse_offsets(found, read_file(folder / str(found)))) if found is not None else []
    except OSError:  # the query goes on meanwhile, and deletes the files of old batches
        return []


def read_file(path: Path) -> bytes:
    """Return what a file of a checkpoint holds; an author names the folder, so it may be no file, or have no end.

    Raises:
        OSError: It cannot be read.
    """
    try:
        return read_bounded(path).encode()
    except UnusableFileError as exc:
        raise OSError(errno.EIO, str(exc), str(path)) from None


def _offsets_of(file: OffsetsFile) -> Sources:
    found = [json.loads(line) if line is not None else None for line in file.sources]
    return [source if isinstance(source, dict) else None for source in found]


def _newest(commits: Path) -> int | None:
    """Return the highest batch; a file of another name is nobody's."""
    return max((int(path.name) for path in commits.iterdir() if path.name.isdecimal()), default=None)
