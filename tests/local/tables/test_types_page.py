"""docs/how-to/formats.md says which types columns have in the tables, as the tables of both formats themselves say it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.support.tables.bad_orders import make
from tests.support.tables.foreign_hands import foreign_iceberg

from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places
from lakebound.tables.schemas import normalise_schema
from lakebound.tables.table import KAFKA_TYPE
from lakebound.tables.type_names import type_name

pytestmark = pytest.mark.local

DOCS = Path(__file__).parents[3] / "docs"
TYPES: list[pa.DataType] = [
    *(pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(12, 2), pa.string(), pa.binary()),
    *(pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us")),
    *(pa.list_(pa.int32()), pa.map_(pa.string(), pa.int32()), pa.struct([pa.field("a", pa.int32())])),
]


def test_the_page_says_what_the_tables_say(at: Places) -> None:
    names = [type_name(kind) for kind in TYPES]
    columns = [pa.field(f"c{number}", kind) for number, kind in enumerate(TYPES)]
    specs = [TableSpec(format=one, name="types.every") for one in ("delta", "iceberg")]  # type: ignore[arg-type]
    for spec in specs:
        make(spec, at, normalise_schema(pa.schema([*columns, pa.field("_kafka", KAFKA_TYPE)])))
    written = json.loads(DeltaTable(str(at.delta_path(specs[0]))).schema().to_json())
    delta = {one["name"]: one["type"] for one in written["fields"]}
    iceberg = {one.name: str(one.field_type).partition("<")[0] for one in foreign_iceberg(specs[1], at).schema().fields}
    found = []
    for column, name in zip(columns, names, strict=True):
        kind = delta[column.name]
        found.append((name, kind if isinstance(kind, str) else kind["type"], iceberg[column.name]))
    page = (DOCS / "how-to" / "formats.md").read_text(encoding="utf-8").partition("## Types in the tables")[2]
    page = page.partition("\n## ")[0]
    assert re.findall(r"^\| `([^`]+)` \| `([^`]+)` \| `([^`]+)` \|$", page, re.MULTILINE) == found


@pytest.mark.parametrize("page", ["avro", "protobuf", "json-schema"])
def test_every_column_of_a_format_is_among_them(page: str) -> None:
    table = (DOCS / "formats" / f"{page}.md").read_text(encoding="utf-8").partition("## Types")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| `[^`]+` \| ([^|]+) \|", table, re.MULTILINE)
    columns = {word for cell in cells for word in re.findall("[A-Z_]{3,}", cell)}
    assert len(columns) > 8 and columns <= {type_name(kind).partition("<")[0].partition("(")[0] for kind in TYPES}
