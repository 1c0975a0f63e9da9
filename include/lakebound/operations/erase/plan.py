"""The plan of an erasure: what each table loses, where copies of it remain, and a hash of what decides it. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import Field

from lakebound.errors import LakeboundError
from lakebound.frozen import Frozen
from lakebound.ledger.erased import ErasedRows
from lakebound.ledger.marks import NextOffsets
from lakebound.operations.recovery.plan import HASH_CHARACTERS

_SAMPLES = 5


class NothingToEraseError(LakeboundError):
    """No row is meant."""

    def __init__(self, pipeline: str, reason: str) -> None:
        super().__init__(f"pipeline {pipeline!r}: nothing to erase: {reason}")


class RepeatedPositionsError(LakeboundError):
    """Rows that are not meant have the same position in Kafka as rows that are."""

    def __init__(self, table: str, rows: int) -> None:
        super().__init__(
            f"table {table}: {rows:,} rows for which the condition is not true have the same offset and ordinal in _kafka as "
            f"rows for which it is, so they cannot be told apart. Nothing was erased. Give a condition that is true for all"
        )


class ErasedShare(Frozen):
    """What one table loses.

    Attributes:
        table: Its id.
        rows: Rows that it loses.
        files: Data files that hold them and are replaced.
        size_bytes: Size of these files.
        kept: Until when older versions of the table show these rows, and what removes them.
    """

    table: str
    rows: int
    files: int
    size_bytes: int
    kept: str


class ErasePlan(Frozen):
    """What is approved: exactly these rows, for exactly this condition.

    Attributes:
        where: The condition. It may name a person: it is not recorded anywhere.
        below: Only rows of offsets below these; rows that land later are not part of the plan.
        erased: The rows.
        remains: Where copies of them may remain.
        notes: What else is to be known.
    """

    pipeline: str
    where: str
    below: dict[str, dict[int, int]]
    erased: ErasedRows = Field(repr=False)
    tables: tuple[ErasedShare, ...] = ()
    remains: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        """Characters of a digest of the condition and the rows; files may be compacted before the plan is applied."""
        decided = [self.pipeline, self.where, self.erased.file.digest]
        return hashlib.sha256(json.dumps(decided).encode()).hexdigest()[:HASH_CHARACTERS]

    @property
    def samples(self) -> tuple[str, ...]:
        """Where the first few rows are from."""
        return tuple(text for _, text in zip(range(_SAMPLES), _positions(self.erased), strict=False))

    def facts(self) -> dict[str, Any]:
        """Return what is recorded of the plan: no condition, and no values."""
        return {"hash": self.hash, **self.model_dump(mode="json", include={"pipeline", "tables"}), "rows": self.erased.rows}

    def markdown(self) -> str:
        """Return the plan as the page that a person approves."""
        lines = [f"### erase {self.pipeline}: rows where {self.where}", ""]
        for share in self.tables:
            lines.append(
                f"- {share.table}: **{share.rows:,} rows** are removed; {share.files:,} files ({share.size_bytes:,} bytes) are "
                f"replaced by copies without these rows"
            )
        lines.append(f"- from: {', '.join(self.samples)}{' …' if self.erased.rows > _SAMPLES else ''}")
        lines += ["", "They are never landed again by a start, a replay, a release or a new table of this pipeline.", ""]
        lines += [f"- {share.kept}" for share in self.tables]
        lines += ["", "Not erased:", ""]
        lines += [f"- {place}" for place in self.remains]
        lines += ["", *(f"- {note}" for note in self.notes)] if self.notes else []
        return "\n".join([*lines, "", f"Plan `{self.hash}`. It is refused if other rows are meant when it is applied."])


def dumped_bound(below: NextOffsets) -> str:
    """Return the bound as the command takes it."""
    return json.dumps(below, separators=(",", ":"), sort_keys=True)


def remaining(topics: Sequence[str], quarantine: str, others: Sequence[str]) -> tuple[str, ...]:
    """Return where copies of erased rows may remain.

    Args:
        topics: The pipeline's.
        quarantine: Id of its quarantine table.
        others: Ids of its target topics and stores.
    """
    found = [
        f"Kafka: the records of {', '.join(topics)}, until retention or compaction deletes them",
        f"{quarantine}: the raw bytes of records that were quarantined. The condition cannot be evaluated on them; "
        f"`lakebound quarantine` lists them",
    ]
    found += [f"{other}: what was sent there" for other in others]
    return (*found, "backups, and whatever other systems have read from the tables")


def _positions(rows: ErasedRows) -> Iterator[str]:
    for part in rows.parts:
        for start, end in part.offsets:
            for offset in range(start, end):
                yield f"{part.topic}/{part.partition}@{offset}" + (f" row {part.ordinal}" if part.ordinal else "")
