"""What waits for validation, and which run was started for it: small files beside the record."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pydantic import TypeAdapter

from lakebound.control.folder import ControlFolder, read_json, write_json
from lakebound.control.progress import read_progress
from lakebound.inspection.validation.history import folder, read_newest
from lakebound.inspection.validation.lateness import Begun, Waiting, waiting_now

_WAITING: TypeAdapter[dict[str, Waiting]] = TypeAdapter(dict[str, Waiting])


def look_what_waits(control: ControlFolder, tables: Iterable[str], now: float) -> Mapping[str, Waiting]:
    """Return which tables have rows that are not validated, and remember since when.

    Args:
        control: State folder of the pipeline.
        tables: Ids of the tables of which something is expected.
        now: Epoch seconds.
    """
    progress = read_progress(control)
    before = read_waiting(control)
    landed = progress.tables if progress is not None else {}
    found = waiting_now(before, landed, read_newest(control), tables, now) if landed else {}
    if found != before:
        with contextlib.suppress(OSError):  # a disk that is full keeps no other finding from being written
            write_json(_waiting(control), {table: one.model_dump(mode="json") for table, one in found.items()})
    return found


def read_waiting(control: ControlFolder) -> Mapping[str, Waiting]:
    """Return what waited at the last look; a file that cannot be read says nothing."""
    try:
        return _WAITING.validate_python(read_json(_waiting(control)) or {})
    except ValueError:
        return {}


@contextlib.contextmanager
def run_begun(control: ControlFolder, run_id: str) -> Iterator[None]:
    """Note a run of what is due while the block lasts; the note of one that was killed stays until the next.

    Args:
        control: State folder of the pipeline.
        run_id: Id of the run.
    """
    with contextlib.suppress(OSError):  # a disk that is full keeps nothing from being validated
        write_json(_begun(control), Begun(run_id=run_id, at=time.time()).model_dump(mode="json"))
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            _begun(control).unlink(missing_ok=True)


def read_begun(control: ControlFolder) -> Begun | None:
    """Return the run that was started and has not ended, as far as is known."""
    try:
        body = read_json(_begun(control))
        return None if body is None else Begun.model_validate(body)
    except ValueError:
        return None


def _waiting(control: ControlFolder) -> Path:
    return folder(control) / "waiting.json"


def _begun(control: ControlFolder) -> Path:
    return folder(control) / "begun.json"
