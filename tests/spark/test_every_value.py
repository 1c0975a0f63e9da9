"""Every value lands or is quarantined: whatever a record holds, no batch fails, and all lanes do the same with it.

``make test`` takes a sample by seed (LAKEBOUND_SEED), ``make test-values`` all.
"""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.support.tables.value_cases import BAD, EITHER, NESTED, RECORDS, SCALARS, Case, cases_of
from tests.support.tables.value_lanes import LandedRows, LaneWorld, Sent

from lakebound.landing.rollup_recorder import Lane
from lakebound.spec.pipeline import PipelineSpec

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("as_applications_write")]

WHOLE = os.environ.get("LAKEBOUND_VALUES") == "full"
SEED = int(os.environ.get("LAKEBOUND_SEED", "1"))
LANES: tuple[Lane, ...] = ("direct", "driver", "cluster")
STAMPS_MS = (1_700_000_000_123, 0, -1, 1_700_000_000_000_000, -62_135_596_800_000, -62_135_596_800_001, 253_402_300_799_999)
STAMPS_MS = (*STAMPS_MS, 253_402_300_800_000)
"""Times of records in Kafka: milliseconds, microseconds, and the ends of the years 1 to 9999."""
_OF_EACH_TYPE = 6
_OF_PARTITION = 24
"""Values of the sample, of each type, and of the columns by which the tables are partitioned."""


@dataclass(frozen=True)
class Shape:
    """Columns, and by what the tables are partitioned; an Iceberg table by transforms, too."""

    columns: dict[str, str]
    delta: tuple[str, ...] = ()
    iceberg: tuple[str, ...] = ()

    def __str__(self) -> str:
        kinds = f"{len(self.columns)} types" if len(self.columns) > 2 else ", ".join(self.columns.values())
        return f"{kinds} by {','.join(self.delta) or 'nothing'} and {','.join(self.iceberg) or 'nothing'}".replace(" ", "-")

    def spec(self) -> PipelineSpec:
        body = {
            "pipeline": "orders",
            "topics": ["orders"],
            "connection": {"bootstrap_servers": "127.0.0.1:1"},
            "value": {"format": "json", "schema": ", ".join(f"{name} {kind}" for name, kind in self.columns.items())},
            "freshness": "1s",
            "tables": [
                {"format": "delta", "name": "shop.values", "partition_by": self.delta},
                {"format": "iceberg", "name": "shop.values", "partition_by": self.iceberg},
            ],
            "quarantine": {"format": "iceberg" if self.delta else "delta", "name": "quarantine.values"},
        }
        return PipelineSpec.model_validate(body)


_TIMES = ("p", "year(p)", "month(p)", "day(p)", "hour(p)")
TRANSFORMS: dict[str, tuple[str, ...]] = {
    "TINYINT": ("p", "truncate(10, p)"),
    "SMALLINT": ("p",),
    "INT": ("p", "truncate(10, p)", "truncate(2147483647, p)"),
    "BIGINT": ("p", "truncate(10, p)", "truncate(7, p)", "truncate(1000000007, p)"),
    "FLOAT": ("",),
    "DOUBLE": ("",),
    "DECIMAL(5,2)": ("p",),
    "DECIMAL(38,10)": ("p",),
    "DECIMAL(38,38)": ("p",),
    "BOOLEAN": ("p",),
    "STRING": ("p", "truncate(1, p)", "truncate(16, p)", "truncate(300, p)"),
    "DATE": ("p", "year(p)", "month(p)", "day(p)"),
    "TIMESTAMP": _TIMES,
    "TIMESTAMP_NTZ": _TIMES,
}
UNPARTITIONED = Shape({f"v{number}": kind for number, kind in enumerate({**SCALARS, **NESTED})})
PARTITIONED = (
    *(
        Shape({"p": kind}, ("p",) if number == 0 else (), (transform,) if transform else ())
        for kind, transforms in TRANSFORMS.items()
        for number, transform in enumerate(transforms)
    ),
    Shape({"p": "STRING", "q": "BIGINT"}, ("p", "q"), ("truncate(2, p)", "truncate(1000, q)")),
    Shape({"p": "TIMESTAMP", "q": "STRING"}, ("q", "p"), ("day(p)", "q")),
)


def _sampled() -> Shape:
    """Return one shape of every type with a partition's columns beside them."""
    found = random.Random(SEED).choice(PARTITIONED)
    return replace(found, columns=found.columns | UNPARTITIONED.columns)


SHAPES = (UNPARTITIONED, *PARTITIONED) if WHOLE else (_sampled(),)


@dataclass(frozen=True)
class Record:
    """A record, the column that it is about, and its fate."""

    value: bytes | None
    column: str
    fate: Any


def records_of(shape: Shape, dice: random.Random) -> list[Record]:
    """Return the records of a shape: one per value of each column, and those that hold none of its values."""
    found = []
    for column, kind in shape.columns.items():
        cases = cases_of(kind, dice)
        if not WHOLE:
            cases = dice.sample(cases, min(len(cases), _OF_EACH_TYPE if column in UNPARTITIONED.columns else _OF_PARTITION))
        found += [_record(column, case) for case in cases]
    others = RECORDS if WHOLE else dice.sample(RECORDS, _OF_EACH_TYPE)
    found += [Record(value, next(iter(shape.columns)), fate) for value, fate in others]
    return [replace(record, fate=BAD) if too_small(record, shape) else record for record in found]


def too_small(record: Record, shape: Shape) -> bool:
    """Whether the value of a partition field ``truncate`` would be smaller than any number of its type."""
    own = [one for one in shape.iceberg if one.startswith("truncate") and one.endswith(f" {record.column})")]
    widths = [int(one.split("(")[1].split(",")[0]) for one in own]
    kind, number = shape.columns[record.column], record.fate[1] if isinstance(record.fate, tuple) else None
    least = {"INT": -(2**31), "BIGINT": -(2**63)}.get(kind)
    return least is not None and isinstance(number, int) and any(number - number % width < least for width in widths)


def _record(column: str, case: Case) -> Record:
    return Record(b'{"%s":%s}' % (column.encode(), case.text), column, case.fate)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_value_lands_or_is_quarantined_and_the_lanes_agree(session: SparkSession, tmp_path: Path, shape: Shape) -> None:
    began, dice = time.monotonic(), random.Random(f"{SEED} {shape}")
    worlds = {way: LaneWorld(session, tmp_path / way, shape.spec(), way) for way in LANES}
    batches = in_batches(records_of(shape, dice), worlds["direct"], dice)
    landed: dict[Lane, LandedRows] = {}
    for way, world in worlds.items():
        for number, batch in enumerate(batches):
            first = sum(map(len, batches[:number]))
            stamps = [STAMPS_MS[(first + at) % len(STAMPS_MS)] for at in range(len(batch))]
            steps = world.land(Sent(first, [record.value for record in batch], stamps))
            if way == "direct" and number == 0:
                assert any(map(world.is_good, (record.value for record in batch)))
                assert "direct_write" in steps
        landed[way] = world.read()
        world.close()
    records = [record for batch in batches for record in batch]
    for way in LANES:
        assert accounted(landed[way], len(records)) == []
        assert worlds[way].counts.read == len(records)
        assert worlds[way].counts.quarantined == len(landed[way].bad)
        assert strayed(landed[way], records, shape) == []
    assert differences(landed, records, shape) == []
    print(f"{shape}: {len(records)} records x {len(LANES)} lanes x 2 formats in {time.monotonic() - began:.1f} s")


def in_batches(records: list[Record], direct: LaneWorld, dice: random.Random) -> list[list[Record]]:
    """Return what lands, what does not, and some of both together."""
    dice.shuffle(records)
    taken = [record for record in records if direct.is_good(record.value)]
    others = [record for record in records if not direct.is_good(record.value)]
    # Shortly, both together: tests/spark/test_landing_in_memory.py.
    both = dice.sample(records, min(len(records), 20)) if WHOLE else []
    return [batch for batch in (taken, others, both) if batch]


def accounted(landed: LandedRows, count: int) -> list[str]:
    """Return what is wrong with the places of the rows: every record is in all tables or in quarantine, once."""
    problems = []
    for offset in range(count):
        rows = [len(rows.get(offset, [])) for rows in landed.tables.values()]
        bad = len(landed.bad.get(offset, []))
        if (rows, bad) not in (([1, 1], 0), ([0, 0], 1)):
            problems.append(f"offset {offset} has {rows} rows, and {bad} in quarantine")
    beyond = {offset for rows in (*landed.tables.values(), landed.bad) for offset in rows} - set(range(count))
    return [*problems, *(f"offset {offset} was not sent" for offset in beyond)]


def strayed(landed: LandedRows, records: list[Record], shape: Shape) -> list[str]:
    """Return the records with which something else happened than follows from their type, and whose bytes were not kept."""
    problems = []
    for offset, record in enumerate(records):
        bad = landed.bad.get(offset)
        if bad is not None and bad[0][2] != record.value:
            problems.append(f"{record.value!r} is {bad[0][2]!r} in quarantine")
        if bad is not None and not (bad[0][0] and bad[0][1]):
            problems.append(f"{record.value!r} is in quarantine without a reason")
        if record.fate == EITHER:
            continue
        if (bad is not None) != (record.fate == BAD):
            problems.append(f"{record.value!r}: {record.fate} expected, {'landed' if bad is None else bad[0][:2]} found")
        elif bad is None:
            for table, rows in landed.tables.items():
                found = rows[offset][0][record.column]
                if as_read(found, table, record.column, shape) != as_read(record.fate[1], table, record.column, shape):
                    problems.append(f"{table}: {record.value!r} landed as {found!r}")
    return problems


def as_read(value: Any, table: str, column: str, shape: Shape) -> Any:
    """Return a value as ``plain`` does, and those alike between which the readers of a format do not tell."""
    if table.startswith("delta") and column in shape.delta:
        # By Delta's protocol an empty partition value is null; of the two zeros, which are one partition, the log has one.
        if value == "" or (isinstance(value, float) and value == 0):
            return value or None
    if table.startswith("iceberg") and shape.columns.get(column, "").startswith("ARRAY<STRUCT<"):
        return plain(value or [])  # PyIceberg 0.12.0 forgets that a list of structs is null (ArrowProjectionVisitor.list)
    return plain(value)


def differences(landed: dict[Lane, LandedRows], records: list[Record], shape: Shape) -> list[str]:
    """Return what became of a record in one lane and not in another."""
    problems = []
    for offset, record in enumerate(records):
        fates = {way: told(landed[way], offset, shape) for way in LANES}
        if len(set(fates.values())) > 1:
            problems.append(f"{record.value!r}: {fates}")
    return problems


def told(landed: LandedRows, offset: int, shape: Shape) -> str:
    """Return all that became of a record, as text."""
    rows = [
        (table, column, as_read(value, table, column, shape))
        for table, found in landed.tables.items()
        for row in found.get(offset, [])
        for column, value in row.items()
    ]
    return repr((rows, [one[:2] for one in landed.bad.get(offset, [])]))


def plain(value: Any) -> Any:
    """Return a value such that two are equal where they are the same, whoever read them."""
    if isinstance(value, dict):
        return {name: plain(inside) for name, inside in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inside) for inside in value]
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Decimal):
        return str(abs(value) if value == 0 else value)
    return value.isoformat() if isinstance(value, date | datetime) else value
