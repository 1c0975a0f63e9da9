"""What a source of reference data gives: a version, its rows, or why it is not usable."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from lakebound.errors import LakeboundError
from lakebound.spec.reference import ReferenceSpec
from lakebound.tables.places import Places
from lakebound.tables.schemas import normalise_schema
from lakebound_spark.reference.rules import MOST_BYTES, size_problem

MOST_TEXT_BYTES = 4 * MOST_BYTES
"""Of rows as text. What is larger is not read at all: its rows may be smaller in memory, but not by so much."""


class UnusableReferenceError(LakeboundError):
    """The table is not as a reference must be, or is not there; the text says how, and nothing of its values."""


@dataclass(frozen=True)
class Version:
    """A version of a source.

    Attributes:
        text: For people and ledger entries.
        token: Differs between any two versions, also of tables that replaced each other.
    """

    text: str
    token: str


@dataclass(frozen=True)
class Loaded:
    """A version that was read."""

    version: Version
    rows: pa.Table


def check_size(rows: int | None, text_bytes: int = 0) -> None:
    """Refuse what is too large before all of it is read.

    Args:
        rows: Number of rows; None where it is not known yet.
        text_bytes: Size of rows as text, as far as they are known.

    Raises:
        UnusableReferenceError: It is too large.
    """
    if problem := size_problem(rows, text_bytes if text_bytes > MOST_TEXT_BYTES else 0):
        raise UnusableReferenceError(problem)


def normalised(rows: pa.Table) -> pa.Table:
    """Return rows in the types that tables have."""
    return rows.cast(normalise_schema(rows.schema))


def check_is_inside(file: Path, places: Places) -> None:
    """Refuse what is in a folder of reference data and leads out of it, or is a device or a pipe, which may have no end.

    Args:
        file: The file.
        places: Those of the pipeline.

    Raises:
        UnusableReferenceError: It is no file of the folder of references.
    """
    folder = places.references.resolve() if places.references is not None else None
    if folder is None or not file.resolve().is_relative_to(folder) or not file.is_file():
        raise UnusableReferenceError(f"{file.name} is not a regular file in the folder {folder}; put a copy there")


def in_folder(spec: ReferenceSpec, places: Places) -> Path:
    """Return the path, links followed: who writes YAML cannot read other files of the machine."""
    folder = places.references.resolve() if places.references is not None else None
    path = (folder / (spec.path or "")).resolve() if folder is not None else None
    if folder is None or path is None or not path.is_relative_to(folder) or path == folder:
        raise UnusableReferenceError(f"{spec.path} is not in the folder {folder}; put it there, or set LAKEBOUND_REFERENCES")
    if not path.exists():
        raise UnusableReferenceError(f"there is no {path}")
    return path
