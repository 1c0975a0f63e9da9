"""Which rows of a pipeline's tables were erased by decision: what a table that is made anew is told.

Each table's ledger names its own list. This one is of all tables, so that a table may even be the pipeline's only one.
"""

from __future__ import annotations

from lakebound.control.folder import ControlFolder, read_text, write_text
from lakebound.errors import LakeboundError
from lakebound.ledger.erased import ErasedRows, decode_erased


class BadErasedRecordError(LakeboundError, is_refusal=True):
    """The record cannot be read."""

    def __init__(self, pipeline: str, file: str, reason: str) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: the record of erased rows, {file}, cannot be read: {reason}. Without it a new table could "
            f"get rows again that were erased by decision. Restore it from a backup"
        )


def read_record(control: ControlFolder) -> ErasedRows:
    """Return the rows; none where nothing was erased.

    Raises:
        BadErasedRecordError: The file cannot be read.
    """
    try:
        text = read_text(control.erased)
        return ErasedRows() if text is None else decode_erased(text.encode())
    except ValueError as exc:
        raise BadErasedRecordError(control.pipeline, str(control.erased), str(exc)) from exc


def write_record(control: ControlFolder, rows: ErasedRows) -> None:
    """Replace the file; after a power cut it is there."""
    write_text(control.erased, rows.encode().decode(), durable=True)
