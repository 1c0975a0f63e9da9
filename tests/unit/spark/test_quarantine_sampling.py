"""Samples of a batch: the last of each reason, cut before they are looked at, and as few as are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructField, StructType

from lakebound.control.folder import ControlFolder
from lakebound.control.quarantine_samples import MOST_REASONS, QuarantineSample
from lakebound.formats.contract import Headers
from lakebound.landing.sample_recorder import SampleRecorder
from lakebound_spark.batch import quarantine_sampling
from lakebound_spark.batch.quarantine_sampling import QuarantineSampling
from lakebound_spark.batch.schema import QUARANTINE_SCHEMA

COLUMNS = StructType([StructField(f"column_{number}", StringType()) for number in range(60)])


class Kept(SampleRecorder):
    """Keeps what it is given."""

    def add(self, samples) -> None:  # type: ignore[no-untyped-def]
        self.found = tuple(samples)


def taken(tmp_path: Path, rows: pa.Table, per_reason: int = 2) -> Sequence[QuarantineSample]:
    recorder = Kept(ControlFolder(tmp_path, "orders"), per_reason)
    QuarantineSampling(recorder, per_reason, COLUMNS).take(rows)
    return recorder.found


def bad(
    count: int, error: str = "column_{}: 'abc' is not an INT", value: bytes | None = b"v", headers: Headers | None = None
) -> pa.Table:
    """Return rows, each of which names another one of the columns."""
    kafka = [
        {"topic": "orders", "topic_id": "t", "partition": 0, "offset": number, "timestamp": None, "timestamp_type": 0}
        for number in range(count)
    ]
    names = [field.name for field in QUARANTINE_SCHEMA.field(0).type]
    return pa.Table.from_pydict(
        {
            QUARANTINE_SCHEMA.names[0]: [{name: row.get(name) for name in names} for row in kafka],
            "reason": ["does_not_fit"] * count,
            "error": [error.format(number % 60) for number in range(count)],
            "key": [None] * count,
            "value": [value] * count,
            "headers": [headers] * count,
        },
        schema=pa.schema([QUARANTINE_SCHEMA.field(name) for name in QUARANTINE_SCHEMA.names]),
    )


def test_no_more_reasons_are_taken_than_are_kept_and_of_each_the_last(tmp_path: Path) -> None:
    found = taken(tmp_path, bad(300))
    assert [one.offset for one in found[:MOST_REASONS]] == [*range(299, 299 - MOST_REASONS, -1)]
    assert found[0].reason == "does_not_fit: column_59"
    assert Counter(Counter(one.reason for one in found).values()) == {2: MOST_REASONS}


def test_a_row_is_read_only_as_long_as_it_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    short_reason = quarantine_sampling.short_reason

    def counted(*args) -> str:  # type: ignore[no-untyped-def]
        looked.append(args[1])
        return short_reason(*args)

    monkeypatch.setattr(quarantine_sampling, "short_reason", counted)
    taken(tmp_path, bad(1000, error="column_{}" + "x" * 5000), per_reason=1)
    assert max(map(len, looked)) <= 301, "errors are cut before they are looked at"
    looked.clear()
    taken(tmp_path, bad(1000), per_reason=1)
    assert len(looked) == MOST_REASONS, "once all reasons have theirs, no other row is looked at"


def test_what_is_shown_is_short_after_it_was_escaped_and_the_whole_length_is_said(tmp_path: Path) -> None:
    found = taken(tmp_path, bad(1, value=b"\x00" * 5000))
    assert found[0].value == "\\x00" * 30 + "…" and found[0].value_bytes == 5000
    assert taken(tmp_path, bad(1, value=b"short"))[0].value == "short"
    none = taken(tmp_path, bad(1, value=None))[0]
    assert (none.value, none.value_bytes, none.key) == (None, None, None)


def test_headers_are_shown_short_and_escaped(tmp_path: Path) -> None:
    assert taken(tmp_path, bad(1))[0].headers is None
    assert taken(tmp_path, bad(1, headers=[("a", b"1"), ("b\n", None), ("", b"\xff")]))[0].headers == "a=1, b\\n, =\\xff"
    many = taken(tmp_path, bad(1, headers=[("n" * 99, b"v" * 99)] * 1_000))[0].headers
    assert many is not None and many.endswith(", … 995 more") and len(many) < 500


def test_chunks_do_not_matter(tmp_path: Path) -> None:
    rows = pa.concat_tables([bad(3), bad(0), bad(5)])
    assert [one.offset for one in taken(tmp_path, rows, 1)] == [4, 3, 2, 1, 0]
