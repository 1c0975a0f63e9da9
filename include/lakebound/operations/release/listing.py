"""What is in a pipeline's quarantine: counts by reason, what is still open, and a few records to look at. No Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebound.formats.reasons import DECODER_REASONS, NOT_LANDED
from lakebound.frozen import Frozen
from lakebound.inspection.proof.history import Spans, union
from lakebound.inspection.proof.offset_arrays import beyond, inside, spans_from, within
from lakebound.operations.release.candidates import look_at, offsets_in
from lakebound.operations.release.reading import keys_of, read_index, read_records
from lakebound.operations.release.released import released_offsets
from lakebound.plain_text import visible_text
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.places import Places
from lakebound.tables.table import Table, open_table

SHOWN_BYTES = 120
"""Maximum bytes of a value that are shown."""
MOST_SHOWN_HEADERS, SHOWN_HEADER_BYTES = 5, 40
"""Of a record, and of a header's name and of its value."""


class QuarantinedRecord(Frozen):
    """One record. ``value``, ``key`` and ``headers`` are cut and escaped; ``value_bytes`` is the value's whole length.

    Each is None where the record has none. ``headers`` are ``name=value, …``.

    ``is_copy``: the record itself landed, and a validation copied it.
    """

    topic: str
    topic_id: str
    partition: int
    offset: int
    timestamp_ms: int | None
    error: str
    key: str | None
    value: str | None
    value_bytes: int | None
    headers: str | None = None
    is_copy: bool = False


class ReasonCount(Frozen):
    """The records of one reason.

    Attributes:
        reason: It.
        records: All.
        open: Those that did not land, that not every table has landed since, and no release has dealt with there.
        copies: Those that landed, and were copied by a validation. They are never open.
        is_replayable: Whether a release may land them: of a copy of what landed it may not.
        first_ms: Of Kafka's timestamps, the earliest.
        last_ms: The latest.
        samples: The newest open ones and copies.
    """

    reason: str
    records: int
    open: int
    copies: int
    is_replayable: bool
    first_ms: int | None
    last_ms: int | None
    samples: tuple[QuarantinedRecord, ...] = ()


class QuarantineListing(Frozen):
    """The quarantine of a pipeline; ``exists`` is False where nothing was ever put into it."""

    pipeline: str
    table: str
    exists: bool = True
    reasons: tuple[ReasonCount, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def open(self) -> int:
        """Records that are still open."""
        return sum(found.open for found in self.reasons)

    @property
    def copies(self) -> int:
        """Copies of rows that landed."""
        return sum(found.copies for found in self.reasons)


def list_quarantine(spec: PipelineSpec, places: Places, *, reason: str | None = None, samples: int = 3) -> QuarantineListing:
    """Return what is in the quarantine.

    Args:
        spec: The pipeline.
        places: Where its tables are.
        reason: Only of this one.
        samples: Number of records to show for each reason.

    Raises:
        LakeboundError: What reading a ledger raises.
    """
    quarantine = spec.quarantine_table
    if not open_table(quarantine, places).exists():
        return QuarantineListing(pipeline=spec.pipeline, table=quarantine.id, exists=False)
    index = read_index(quarantine, places, None if reason is None else [reason])
    released, notes = _released(spec, places, index)
    is_copy = _copies(index)
    is_open = ~_inside(index, released) & ~is_copy
    names = sorted(name for name in pc.unique(index["reason"]).to_pylist() if name is not None)
    found = [_count(index, is_open, is_copy, name) for name in names]
    shown = _samples(spec, places, index, is_open, is_copy, names, samples)
    counts = tuple(count.model_copy(update={"samples": shown.get(count.reason, ())}) for count in found)
    return QuarantineListing(pipeline=spec.pipeline, table=quarantine.id, reasons=counts, notes=notes)


def escaped(value: bytes | str | None, most: int = SHOWN_BYTES, most_chars: int | None = None) -> str | None:
    """Return the beginning of bytes or text, safe to print: what is no text, or moves the cursor, stands as ``\\x..``.

    Args:
        value: Of a record; None stays None.
        most: How many bytes of it at most.
        most_chars: How long the result is at most, its ellipsis apart; None: a byte may need four characters, or more.
    """
    if value is None:
        return None
    raw = value.encode(errors="backslashreplace") if isinstance(value, str) else value
    text = raw[:most].decode("utf-8", "backslashreplace")
    shown = visible_text(text)
    cut = shown if most_chars is None else shown[:most_chars]
    return cut + ("…" if len(raw) > most or len(cut) < len(shown) else "")


def shown_headers(headers: object) -> str | None:
    """Return the first headers of a record, cut and escaped as ``escaped`` does; None without any.

    Args:
        headers: Names and values as rows of the quarantine have them.
    """
    if not isinstance(headers, list) or not headers:
        return None
    shown = ", ".join(_shown_header(one) for one in headers[:MOST_SHOWN_HEADERS])
    return shown + (f", … {len(headers) - MOST_SHOWN_HEADERS} more" if len(headers) > MOST_SHOWN_HEADERS else "")


def _shown_header(header: Mapping[str, Any]) -> str:
    name, value = (escaped(header[part], SHOWN_HEADER_BYTES, SHOWN_HEADER_BYTES) for part in ("name", "value"))
    return str(name) if value is None else f"{name}={value}"


def _released(spec: PipelineSpec, places: Places, index: pa.Table) -> tuple[Spans, tuple[str, ...]]:
    """Return what every table of the pipeline has landed after all, or was released from quarantine in."""
    tables = [table for one in spec.tables if (table := open_table(one, places)).exists()]
    found = [_released_in(table, index) for table in tables]
    if not found:
        return {}, ()
    offsets = offsets_in(index)
    for spans, _ in found:
        offsets = within(offsets, {key: spans[key] for key in offsets if key in spans})
    return spans_from(offsets), tuple(note for _, note in found if note)


def _released_in(table: Table, index: pa.Table) -> tuple[Spans, str]:
    view = table.read_ledger()
    named, unnamed = released_offsets(table.entries(), view.released)
    # What was bad when it was first read may have fitted when a later start or a replay read it again: no entry names that.
    tried = offsets_in(index.filter(pa.array(~_copies(index))))
    if not unnamed and not beyond(tried, named):
        return named, ""
    landed = look_at(table, tried).landed
    if not unnamed:
        return union([named, spans_from(landed)]), ""
    text = f"{table.spec.id}: the entries of {unnamed:,} released offsets are no longer kept; its rows were read instead"
    return union([named, spans_from(landed)]), text


def _copies(index: pa.Table) -> npt.NDArray[np.bool_]:
    """Return which rows are copies of what has landed: no release deals with them."""
    marked = pc.fill_null(pc.less(index["ordinal"], 0), False)
    known = pc.is_in(index["reason"], value_set=pa.array(NOT_LANDED))
    found: npt.NDArray[np.bool_] = pc.or_(marked, pc.invert(known)).to_numpy()
    return found


def _inside(index: pa.Table, spans: Spans) -> npt.NDArray[np.bool_]:
    found = np.zeros(index.num_rows, dtype=np.bool_)
    offsets = index["offset"].to_numpy()
    for key, positions in keys_of(index):
        found[positions] = inside(offsets[positions], spans.get(key, ()))
    return found


def _count(index: pa.Table, is_open: npt.NDArray[np.bool_], is_copy: npt.NDArray[np.bool_], reason: str) -> ReasonCount:
    mask = _of_reason(index, reason)
    times = pc.min_max(index["timestamp"].filter(pa.array(mask))).as_py()
    return ReasonCount(
        reason=reason,
        records=int(mask.sum()),
        open=int((mask & is_open).sum()),
        copies=int((mask & is_copy).sum()),
        is_replayable=reason in DECODER_REASONS,
        first_ms=_ms(times["min"]),
        last_ms=_ms(times["max"]),
    )


def _samples(
    spec: PipelineSpec,
    places: Places,
    index: pa.Table,
    is_open: npt.NDArray[np.bool_],
    is_copy: npt.NDArray[np.bool_],
    reasons: Sequence[str],
    number: int,
) -> dict[str, tuple[QuarantinedRecord, ...]]:
    """Return the newest open records and copies of each reason; only their bytes are read."""
    newest, times = [], index["timestamp"].to_numpy()
    for reason in reasons if number else ():
        positions = np.flatnonzero(_of_reason(index, reason) & (is_open | is_copy))
        newest.append(positions[np.argsort(times[positions], kind="stable")[::-1][:number]])
    if not newest:
        return {}
    positions = np.concatenate(newest)
    chosen, copies = index.take(pa.array(positions)), is_copy[positions]
    records = read_records(spec.quarantine_table, places, offsets_in(chosen), reasons).to_pylist()
    wanted = {_key(row): number for number, row in enumerate(chosen.to_pylist())}
    found: dict[str, list[QuarantinedRecord]] = {}
    for row in sorted((row for row in records if _key(row) in wanted), key=lambda row: wanted[_key(row)]):
        found.setdefault(row["reason"], []).append(_sample(row, is_copy=bool(copies[wanted[_key(row)]])))
    return {reason: tuple(samples[:number]) for reason, samples in found.items()}


def _sample(row: dict[str, object], *, is_copy: bool) -> QuarantinedRecord:
    value, key, error = row["value"], row["key"], row["error"]
    return QuarantinedRecord.model_validate(
        {name: row[name] for name in ("topic", "topic_id", "partition", "offset")}
        | {"timestamp_ms": _ms(row["timestamp"]), "error": escaped(str(error or ""), 300)}
        | {"key": escaped(key if isinstance(key, bytes) else None, 60)}
        | {"value": escaped(value if isinstance(value, bytes) else None)}
        | {"value_bytes": len(value) if isinstance(value, bytes) else None, "is_copy": is_copy}
        | {"headers": shown_headers(row["headers"])}
    )


def _key(row: dict[str, object]) -> tuple[object, ...]:
    return tuple(row[name] for name in ("reason", "topic", "topic_id", "partition", "offset"))


def _of_reason(index: pa.Table, reason: str) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = pc.fill_null(pc.equal(index["reason"], reason), False).to_numpy()
    return found


def _ms(moment: object) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)  # type: ignore[attr-defined]
