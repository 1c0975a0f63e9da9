"""Columns that look renamed: the table has one that the pipeline lost, and the pipeline a new one of the same type. Pure.

A table's columns keep their names. To the pipeline a renamed column is a new one: it is null in every old row, and the old
column is null in every new row. Only a person knows whether that is meant.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

import pyarrow as pa


def likely_renames(lost: Mapping[str, pa.DataType], new: Mapping[str, pa.DataType]) -> dict[str, str]:
    """Return the former name of each new column that looks renamed; of several that are possible, the most similar name.

    Args:
        lost: Columns that only the table has, with their types.
        new: Columns that only the pipeline has, with their types.
    """
    possible = [(_likeness(old, name), name, old) for name, kind in new.items() for old, was in lost.items() if was == kind]
    found: dict[str, str] = {}
    for _, name, old in sorted(possible, key=lambda one: (-one[0], one[1], one[2])):
        if name not in found and old not in found.values():
            found[name] = old
    return found


def question(path: Iterable[str], former: str) -> str:
    """Return what to ask about a column that looks renamed, with what to do if it is.

    Args:
        path: Names from the column down to the new field.
        former: The name that the field has in the table.
    """
    *around, name = path
    there = "the transform" if around else f'the transform: .withColumnRenamed("{name}", "{former}")'
    return (
        f"was {former} renamed to {name}? A table's column keeps its name: if the records still have {former}, write {former} "
        f"in the schema again; if they have {name} now, give it the name {former} in {there}"
    )


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one.casefold(), other.casefold()).ratio()
