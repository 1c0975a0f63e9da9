"""Columns of a table's files that readers do not see rightly: rows of the right offsets may have wrong values. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from lakebound.inspection.proof.result import MisreadColumn, TableProof
from lakebound.tables.misread import ColumnsLook, MisreadFile, Misreading

_NAMED_FILES = 5
_WAY_OUT = 'the runbook proof-failed, part "Columns that readers do not see rightly", says how to get them right'


def judge_columns(proof: TableProof, look: ColumnsLook) -> TableProof:
    """Return the proof with what was found in the columns of the table's files."""
    by_misreading: dict[Misreading, list[MisreadFile]] = {}
    for one in look.misread:
        by_misreading.setdefault(one.misreading, []).append(one)
    misread = tuple(_column(misreading, files) for misreading, files in by_misreading.items())
    problems = [f"columns that readers do not see rightly: {one}; {_WAY_OUT}" for one in misread]
    if look.undecided:
        problems.append(
            f"columns of {_files(look.undecided)}: it cannot be told for which columns they were written, because the commits "
            f"that added them are not kept any more, and the names have meant several columns; {_WAY_OUT}"
        )
    return proof.adding(misread=misread, problems=problems, notes=_limits(look))


def _column(misreading: Misreading, files: Sequence[MisreadFile]) -> MisreadColumn:
    rows = [one.rows for one in files]
    return MisreadColumn(
        column=misreading.column,
        belongs_to=misreading.belongs_to,
        seen_in=misreading.seen_in,
        files=len(files),
        rows=None if None in rows else sum(count or 0 for count in rows),
        such_as=tuple(one.file for one in files[:_NAMED_FILES]),
    )


def _files(names: Sequence[str]) -> str:
    return f"the file {names[0]}" if len(names) == 1 else f"{len(names):,} files, such as {names[0]}"


def _limits(look: ColumnsLook) -> list[str]:
    if look.looked_at == look.files:
        return []
    return [f"the columns of {look.looked_at:,} of its {look.files:,} files were looked at, the newest ones"]
