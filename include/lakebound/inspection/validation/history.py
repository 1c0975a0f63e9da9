"""What was validated, as an append-only record with claims: it contains each commit once, and skips none.

One run of a pipeline at a time holds the lock. It writes a *claim* before it begins a range, and one line of the record when
the verdict is there; the claim goes last. A run that is killed leaves its claim, and the next run takes exactly that range
first: what depends on a range, such as records that it copies to the quarantine, can so be found again by the claim's id. The
record is written in one step, and a line that a power cut has torn counts as not written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from lakebound.control.folder import ControlFolder, locked_if_free, read_json, write_json, write_text
from lakebound.control.private_files import open_private
from lakebound.errors import LakeboundError, NotWithSharedStateError
from lakebound.frozen import FrozenRecord
from lakebound.inspection.validation.line import Gap, ValidatedSoFar
from lakebound.inspection.validation.verdict import ValidatedRange
from lakebound.ledger.intervals import Interval, merge

MAX_RECORD_BYTES = 16 * 1024 * 1024
"""Of the history. Then the older half of each table's lines becomes one that says no more than which commits were validated."""

NEWEST_BYTES = 256 * 1024
"""The end of the history, as the page shows it."""


class ValidationRunsError(LakeboundError):
    """Another validation of the pipeline is under way."""

    def __init__(self, pipeline: str) -> None:
        super().__init__(
            f"pipeline {pipeline!r} is being validated by another run, which validates the same rows; this run did nothing"
        )


class Claim(FrozenRecord):
    """A range that a run has begun.

    Attributes:
        id: A UUID; what is done for the range carries it.
        holes: Positions among ``positions`` that could not be read when it was claimed.
        lost_offsets: How many offsets were landed there.
    """

    id: str
    run_id: str
    table: str
    positions: tuple[Interval, ...]
    holes: tuple[Interval, ...] = ()
    lost_offsets: int = 0
    is_before_first: bool = False

    @property
    def gap(self) -> Gap | None:
        """What could not be read."""
        return Gap(self.holes, self.lost_offsets, self.is_before_first) if self.lost_offsets else None


def folder(control: ControlFolder) -> Path:
    """Return the folder of all that validation keeps of a pipeline."""
    return control.folder / "validation"


def history_file(control: ControlFolder) -> Path:
    """Return the record."""
    return folder(control) / "history.jsonl"


def refuse_shared(control: ControlFolder) -> None:
    """Keep a machine from validating what another one has validated: the record is this machine's alone.

    Raises:
        NotWithSharedStateError: Machines share the pipeline's state.
    """
    if control.is_shared:
        raise NotWithSharedStateError("lakebound validate", "Its record is not shared; validate with state in a folder")


@contextmanager
def only_run(control: ControlFolder) -> Iterator[None]:
    """Be the pipeline's only validation on this machine inside the block; the lock of a killed run is free by itself.

    Raises:
        ValidationRunsError: Another one is under way.
        NotWithSharedStateError: Another machine may have validated what this one would validate again.
    """
    refuse_shared(control)
    with locked_if_free(folder(control) / "run") as is_mine:
        if not is_mine:
            raise ValidationRunsError(control.pipeline)
        yield


def read_history(control: ControlFolder) -> list[ValidatedRange]:
    """Return the record, oldest first; an incomplete line is skipped."""
    try:
        text = history_file(control).read_text(errors="replace")
    except FileNotFoundError:
        return []
    return [found for line in text.splitlines() if (found := _range(line)) is not None]


def read_newest(control: ControlFolder, most_bytes: int = NEWEST_BYTES) -> list[ValidatedRange]:
    """Return the end of the record, oldest first: for who looks often, and must not read it whole.

    Args:
        control: State folder of the pipeline.
        most_bytes: How much of the file is read.
    """
    try:
        with open(history_file(control), "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - most_bytes))
            text = file.read(most_bytes).decode(errors="replace")
    except FileNotFoundError:
        return []
    # What is left of a line whose beginning was not read is no line.
    return [found for line in text.splitlines() if (found := _range(line)) is not None]


def append(control: ControlFolder, record: ValidatedRange) -> None:
    """Add a line to the record, in one step that survives a power cut. Only who holds the lock may."""
    path = history_file(control)
    _fold_if_large(path)
    with open_private(path, "ab") as file:
        start = b"\n" if file.tell() and _last_byte(path) != b"\n" else b""
        file.write(start + record.model_dump_json(exclude_defaults=True).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def done_of(table: str, history: Iterable[ValidatedRange]) -> ValidatedSoFar:
    """Return what the record says was validated of a table. Pure."""
    own = [one for one in history if one.table == table]
    positions = merge(interval for one in own for interval in one.positions)
    return ValidatedSoFar(positions, {one.positions[-1][1] - 1: one.offsets for one in own if one.positions})


def write_claim(control: ControlFolder, claim: Claim) -> None:
    """Say that a range is begun."""
    write_json(_claim_file(control, claim.table), claim.model_dump(mode="json"), durable=True)


def open_claim(control: ControlFolder, table: str, history: Iterable[ValidatedRange]) -> Claim | None:
    """Return the claim of a run that ended in the middle of a table's range; None where there is none.

    A claim that cannot be read was never begun: work starts after it is written whole.

    Args:
        control: State folder of the pipeline.
        table: Id of the table whose claim is looked for.
        history: Validated ranges of the pipeline; a claim that is among them is over, and its file is removed.
    """
    path = _claim_file(control, table)
    try:
        body = read_json(path)
        claim = None if body is None else Claim.model_validate(body)
    except ValueError:
        claim = None
    if claim is not None and any(one.claim == claim.id for one in history):
        drop_claim(control, table)
        return None
    return claim


def drop_claim(control: ControlFolder, table: str) -> None:
    """Say that the table's claim is done with."""
    _claim_file(control, table).unlink(missing_ok=True)


def _claim_file(control: ControlFolder, table: str) -> Path:
    return folder(control) / "claims" / f"{table.replace(':', '_')}.json"


def _range(line: str) -> ValidatedRange | None:
    try:
        return ValidatedRange.model_validate_json(line)
    except ValidationError:
        return None


def _last_byte(path: Path) -> bytes:
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1)


def _fold_if_large(path: Path, max_bytes: int = MAX_RECORD_BYTES) -> None:
    try:
        if path.stat().st_size <= max_bytes:
            return
    except FileNotFoundError:
        return
    ranges = [found for line in path.read_text(errors="replace").splitlines() if (found := _range(line)) is not None]
    kept = folded(ranges)
    write_text(path, "".join(f"{one.model_dump_json(exclude_defaults=True)}\n" for one in kept), durable=True)


def folded(ranges: list[ValidatedRange]) -> list[ValidatedRange]:
    """Return the record with the older half of its lines as one line per table. Pure."""
    half = len(ranges) // 2
    older, newer = ranges[:half], ranges[half:]
    lines = []
    for table in dict.fromkeys(one.table for one in older):
        own = [one for one in older if one.table == table]
        positions = merge(interval for one in own for interval in one.positions)
        forgotten: dict[str, object] = {"results": (), "skipped": {}, "lost": None, "first": ""}
        lines.append(own[-1].model_copy(update={**forgotten, "positions": positions}))
    return [*lines, *newer]
