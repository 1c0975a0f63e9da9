"""Reads the quarantine table without Spark: only the columns and, as far as statistics help, the files that are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebound.formats.headers import HEADERS_TYPE
from lakebound.inspection.proof.offset_arrays import Arrays, among
from lakebound.ledger.topics import TopicIdPartition
from lakebound.spec.table import TableSpec
from lakebound.tables.contents import Selection, contents_of
from lakebound.tables.places import Places

INDEX = ("topic", "topic_id", "partition", "offset", "timestamp", "ordinal")
"""What an index says of each record, with its reason. A negative ordinal marks a copy of what has landed."""

_WHOLE = ("error", "key", "value", "headers")


@dataclass(frozen=True)
class Chosen:
    """Which rows are read.

    Attributes:
        reasons: Of these; None: of any.
        offsets: From the first up to and with the second; None: any.
        copies: Whether copies of what has landed are among them.
    """

    reasons: tuple[str, ...] | None = None
    offsets: tuple[int, int] | None = None
    copies: bool = True


def read_index(spec: TableSpec, places: Places, reasons: Sequence[str] | None = None, *, copies: bool = True) -> pa.Table:
    """Return where each record is, when it was written and its reason.

    Args:
        spec: The quarantine table.
        places: Where it is.
        reasons: Only of these; None: of any.
        copies: Whether copies of what has landed are wanted, too.
    """
    chosen = Chosen(None if reasons is None else tuple(reasons), copies=copies)
    return _table(list(_batches(spec, places, INDEX, ("reason",), chosen)), INDEX, ("reason",))


def read_places(spec: TableSpec, places: Places, first: int, last: int) -> pa.Table:
    """Return where the records of a range of offsets are, without copies of what has landed.

    Args:
        spec: The quarantine table.
        places: Where it is.
        first: The lowest offset, of any partition.
        last: The highest.
    """
    chosen = Chosen(offsets=(first, last), copies=False)
    return _table(list(_batches(spec, places, INDEX, (), chosen)), INDEX, ())


def read_records(
    spec: TableSpec, places: Places, wanted: Arrays, reasons: Sequence[str] | None = None, *, copies: bool = True
) -> pa.Table:
    """Return the index, error, key, value and headers of the records with these offsets, and with one of the reasons.

    A table from before headers were kept has none: they are null.

    Args:
        spec: The quarantine table.
        places: Where it is.
        wanted: Sorted offsets per topic, topic id and partition.
        reasons: Only of these; None: of any.
        copies: Whether copies of what has landed are wanted, too.
    """
    ends = [(int(offsets[0]), int(offsets[-1])) for offsets in wanted.values() if len(offsets)]
    columns = ("reason", *_WHOLE)
    if not ends:
        return _table([], INDEX, columns)
    bounds = min(first for first, _ in ends), max(last for _, last in ends)
    chosen = Chosen(None if reasons is None else tuple(reasons), bounds, copies)
    return _table(
        [
            batch.filter(among_offsets(pa.Table.from_batches([batch]), wanted))
            for batch in _batches(spec, places, INDEX, columns, chosen)
        ],
        INDEX,
        columns,
    )


def keys_of(index: pa.Table) -> Iterator[tuple[TopicIdPartition, npt.NDArray[np.int64]]]:
    """Yield each topic, topic id and partition of an index, with the positions of its rows."""
    if not index.num_rows:
        return
    codes = np.zeros(index.num_rows, dtype=np.int64)
    for name in INDEX[:3]:
        encoded = pc.dictionary_encode(index[name].combine_chunks())
        codes = codes * (len(encoded.dictionary) + 1) + encoded.indices.fill_null(len(encoded.dictionary)).to_numpy()
    order = np.argsort(codes, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        topic, topic_id, partition = (index[name][int(group[0])].as_py() for name in INDEX[:3])
        yield (topic, topic_id, partition), group


def among_offsets(index: pa.Table, wanted: Arrays) -> pa.Array:
    """Return which rows of an index are of wanted offsets.

    Args:
        index: With the columns topic, topic_id, partition and offset.
        wanted: Sorted offsets per topic, topic id and partition.
    """
    kept = np.zeros(index.num_rows, dtype=np.bool_)
    offsets = index["offset"].to_numpy()
    for key, positions in keys_of(index):
        kept[positions] = among(offsets[positions], wanted.get(key, np.zeros(0, dtype=np.int64)))
    return pa.array(kept)


def _table(batches: list[pa.RecordBatch], kafka: Sequence[str], columns: Sequence[str]) -> pa.Table:
    if batches:
        return pa.Table.from_batches(batches)
    types = {"partition": pa.int32(), "ordinal": pa.int32(), "offset": pa.int64(), "timestamp": pa.timestamp("us", tz="UTC")}
    types |= {"key": pa.binary(), "value": pa.binary(), "headers": HEADERS_TYPE}
    return pa.schema([pa.field(name, types.get(name, pa.string())) for name in (*kafka, *columns)]).empty_table()


def _column(batch: pa.RecordBatch, wanted: pa.Field) -> pa.Array:
    is_there = wanted.name in batch.schema.names
    return batch.column(wanted.name).cast(wanted.type) if is_there else pa.nulls(len(batch), wanted.type)


def _batches(
    spec: TableSpec, places: Places, kafka: Sequence[str], columns: Sequence[str], chosen: Chosen
) -> Iterator[pa.RecordBatch]:
    wanted = _table([], kafka, columns).schema
    among = {} if chosen.reasons is None else {"reason": chosen.reasons}
    for batch in contents_of(spec, places).rows(Selection(kafka, columns, among, chosen.offsets)):
        own = pa.RecordBatch.from_arrays([_column(batch, f) for f in wanted], schema=wanted)
        if not chosen.copies:
            own = own.filter(pc.greater_equal(own.column("ordinal"), 0).fill_null(True))
        if own.num_rows:
            yield own
