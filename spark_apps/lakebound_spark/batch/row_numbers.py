"""The number of each row of a record, ``_kafka.ordinal``: from 0 on, whatever the transform has made of the record.

The rows of a record are numbered in the order of the number that the transform gave them (0, or that of an explode), then of
their values, column by column. So the same rows get the same numbers in each lane and in a replay. Most records have one row:
then nothing is sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebound.spec.pipeline import KAFKA_COLUMN

KEY_FIELDS = ("topic", "partition", "offset")
"""Of ``_kafka``: what tells a record from others."""
_ORDINAL = "ordinal"


def numbered(rows: pa.Table) -> tuple[pa.Table, int]:
    """Return the rows with their numbers, and of how many records they are.

    Args:
        rows: With ``_kafka``; all rows of each of their records.
    """
    if not rows.num_rows:
        return rows, 0
    kafka = rows[KAFKA_COLUMN].combine_chunks()
    keys = _keys(kafka)
    given = np.asarray(kafka.field(_ORDINAL).fill_null(0).to_numpy(zero_copy_only=False))
    if _is_increasing(keys):
        made, records = np.zeros(rows.num_rows, np.int32), rows.num_rows
    else:
        made, records = _numbers(rows, keys, given)
    return (rows if np.array_equal(made, given) else _with_numbers(rows, kafka, made)), records


def numbered_parts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return rows with their numbers, part after part; those of a record follow each other, in more than one part, too.

    Args:
        batches: Of Arrow, as an executor gets them.
    """
    held: pa.Table | None = None
    for batch in batches:
        part = pa.Table.from_batches([batch])
        if not part.num_rows:
            continue
        held = part if held is None else pa.concat_tables([held, part])
        begin = _last_record(held)
        yield from numbered(held.slice(0, begin))[0].to_batches()
        held = held.slice(begin)
    if held is not None:
        yield from numbered(held)[0].to_batches()


def _keys(kafka: pa.StructArray) -> list[npt.NDArray[np.int64]]:
    """Return topic, partition and offset of each row as numbers."""
    topic, partition, offset = (kafka.field(name) for name in KEY_FIELDS)
    of_topic = topic.dictionary_encode().indices.fill_null(-1)
    return [np.asarray(one.to_numpy(zero_copy_only=False), np.int64) for one in (of_topic, partition, offset)]


def _is_increasing(keys: list[npt.NDArray[np.int64]]) -> bool:
    """Whether each row is of another record, as the order shows: what is read comes partition by partition."""
    topic, partition, offset = keys
    begins = np.flatnonzero((np.diff(topic) != 0) | (np.diff(partition) != 0)) + 1
    follows = np.diff(offset) > 0
    follows[begins - 1] = True
    if not follows.all():
        return False
    runs = {*zip(topic[[0, *begins]].tolist(), partition[[0, *begins]].tolist(), strict=True)}
    return len(runs) == len(begins) + 1


def _numbers(
    rows: pa.Table, keys: list[npt.NDArray[np.int64]], given: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int32], int]:
    """Return the number of each row, and of how many records they are."""
    by: list[npt.NDArray[Any]] = [given, *reversed(keys)]
    order = np.lexsort(by)
    same = np.ones(len(order) - 1, bool)
    for key in keys:
        same &= np.diff(key[order]) == 0
    ties = same & (np.diff(given[order]) == 0)
    if ties.any():
        order = _by_values(rows, keys, given, order, ties)
    begins = np.flatnonzero(np.concatenate([[True], ~same]))
    counts = np.diff(np.append(begins, len(order)))
    made = np.empty(len(order), np.int32)
    made[order] = np.arange(len(order)) - np.repeat(begins, counts)
    return made, len(begins)


def _by_values(
    rows: pa.Table,
    keys: list[npt.NDArray[np.int64]],
    given: npt.NDArray[np.int32],
    order: npt.NDArray[np.int64],
    ties: npt.NDArray[np.bool_],
) -> npt.NDArray[np.int64]:
    """Return the order in which rows of a record with one number stand by their values."""
    tied = np.zeros(len(order), bool)
    tied[:-1] |= ties
    tied[1:] |= ties
    at = order[tied]
    ranks: list[npt.NDArray[np.int64]] = []
    for name in rows.column_names:
        if name != KAFKA_COLUMN:
            ranks.append(_ranks(rows[name].take(pa.array(at))))
    by: list[npt.NDArray[Any]] = [*reversed(ranks), given[at], *(key[at] for key in reversed(keys))]
    by_values = np.lexsort(by)
    result = order.copy()
    result[tied] = at[by_values]
    return result


def _ranks(values: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Return for each value which of the different ones it is, in their order; nested ones by their text."""
    whole = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    try:
        ranks = pc.rank(whole, tiebreaker="dense")
    except pa.ArrowNotImplementedError:
        ranks = pc.rank(pa.array([repr(value) for value in whole.to_pylist()], pa.string()), tiebreaker="dense")
    return np.asarray(ranks.to_numpy(zero_copy_only=False), np.int64)


def _with_numbers(rows: pa.Table, kafka: pa.StructArray, made: npt.NDArray[np.int32]) -> pa.Table:
    at = rows.column_names.index(KAFKA_COLUMN)
    fields = list(kafka.type)
    columns = [pa.array(made) if one.name == _ORDINAL else kafka.field(one.name) for one in fields]
    typed = [column.cast(one.type) for column, one in zip(columns, fields, strict=True)]
    return rows.set_column(at, rows.schema.field(at), pa.StructArray.from_arrays(typed, fields=fields))


def _last_record(rows: pa.Table) -> int:
    """Return where the rows of the last record begin."""
    kafka = rows[KAFKA_COLUMN].combine_chunks()
    keys = _keys(kafka)
    others = np.zeros(rows.num_rows, bool)
    for key in keys:
        others |= key != key[-1]
    before = np.flatnonzero(others)
    return int(before[-1]) + 1 if before.size else 0
