"""Records with schemas, and bytes that are none, become in the executors what they become in the driver, and stop nothing.

Executors get them in pieces, the driver all at once: nothing depends on the records beside it. What the driver makes of them is
compared with plain readers beside this (test_avro_bytes.py, test_protobuf_records.py, test_json_schema_values.py).
"""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from tests.support.formats import version_chains
from tests.support.formats.hostile_values import REFUSED, STRANGE, TEXT, names_another, values_of
from tests.support.formats.version_chains import Format, changes_of

from lakebound.formats.contract import Records
from lakebound.formats.headers import headers_array
from lakebound.formats.kinds import SchemaFormat
from lakebound.formats.schemas import SchemaId, SchemaText
from lakebound.formats.versions import Version as ReadVersion
from lakebound.formats.versions import schemas_of_subjects
from lakebound_spark.batch.decode import HEADERS, KEY, PROBLEM, VALUE, Whether, decoded_batch

AT_ONCE = 100


@pytest.mark.parametrize("form", TEXT)
def test_executors_make_of_any_bytes_what_the_driver_makes_of_them(form: Format) -> None:
    draw = random.Random(5)
    versions = version_chains.chain(draw, form, changes_of(draw, form, 3))
    read = [ReadVersion(number, (number,), SchemaText(form, TEXT[form](one))) for number, one in enumerate(versions, 1)]
    unfit: dict[SchemaId, str] = {number: "tables cannot follow" for number, one in enumerate(versions, 1) if not one.fits}
    found = schemas_of_subjects({"orders-value": read}, None, unfit, {REFUSED: "nobody has it", STRANGE: "nor this"})
    values_format = SchemaFormat(found.columns, found.reader, known=found.known)
    # Random bytes may name a schema that nobody knows: those are asked for, and are another test's.
    values = [one for one in values_of(draw, form, versions) if not names_another(one, len(versions))]
    alone = values_format.decoder().decode(Records([None] * len(values), values))
    assert len(alone.problems) > 100 and len(alone.good) > 100, "there are good and bad ones"
    rows = iter(pa.table(dict(alone.columns)).to_pylist())
    expected = [
        f"{alone.problems[at].reason}\t{alone.problems[at].detail}" if at in alone.problems else next(rows)
        for at in range(len(values))
    ]
    assert any(row.get("f4") == "é" * 5_000_000 for row in expected if isinstance(row, dict))
    decoder, got = values_format.decoder(), []
    for first in range(0, len(values), AT_ONCE):
        part = values[first : first + AT_ONCE]
        kafka = pa.array([{"offset": at} for at in range(len(part))])
        columns = [kafka, pa.array([b"k"] * len(part)), pa.array(part, pa.binary()), headers_array([None] * len(part))]
        batch = pa.record_batch(columns, ["_kafka", KEY, VALUE, HEADERS])
        made = decoded_batch(batch, decoder, pa.struct(list(found.columns)), Whether(is_null_skipped=False, reads_headers=True))
        got += [row["_parsed"] if row[PROBLEM] is None else row[PROBLEM] for row in made.to_pylist()]
    assert [*map(repr, got)] == [*map(repr, expected)]
