"""Chains of versions, drawn at random: records of each of them are read with the newest as the rules of their format say."""

from __future__ import annotations

import io
import json
import random
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from tests.support.formats import version_chains
from tests.support.formats.protobuf import message_class
from tests.support.formats.version_chains import Format, Row, Version, changes_of, columns_of, rows_of, value_of

from lakebound.formats.contract import Records
from lakebound.formats.kinds import SchemaFormat
from lakebound.formats.schemas import SchemaId, SchemaText
from lakebound.formats.versions import Version as ReadVersion
from lakebound.formats.versions import schemas_of_subjects

TEXT = {"avro": version_chains.avro_text, "protobuf": version_chains.proto_text, "json_schema": version_chains.json_text}
RECORDS = 30


def payload(form: Format, version: Version, value: Row) -> bytes:
    if form == "json_schema":
        return json.dumps(value).encode()
    if form == "protobuf":
        kind = message_class(version_chains.proto_text(version), "shop.Order")
        made: Any = kind(**version_chains.proto_value(version, value))
        return b"\0" + bytes(made.SerializeToString())
    content = io.BytesIO()
    fastavro.schemaless_writer(content, fastavro.parse_schema(json.loads(version_chains.avro_text(version))), value)
    return content.getvalue()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("form", TEXT)
def test_records_of_each_version_are_read_with_the_newest(form: Format, seed: int) -> None:
    draw = random.Random(seed)
    chain = version_chains.chain(draw, form, changes_of(draw, form, 10))
    read = [ReadVersion(number, (number,), SchemaText(form, TEXT[form](one))) for number, one in enumerate(chain, 1)]
    refused: dict[SchemaId, str] = {number: "tables cannot follow" for number, one in enumerate(chain, 1) if not one.fits}
    found = schemas_of_subjects({"orders-value": read}, None, refused, {})
    fitting = [one for one in chain if one.fits]
    columns, decoder = columns_of(fitting), SchemaFormat(found.columns, found.reader, known=found.known).decoder()
    assert set(found.columns.names) == set(columns) and len(fitting) > 5
    for number, version in enumerate(chain, 1):
        values = [value_of(draw, version, at) for at in range(RECORDS)]
        framed = [b"\0" + number.to_bytes(4, "big") + payload(form, version, value) for value in values]
        made = decoder.decode(Records([None] * RECORDS, framed))
        if not version.fits:
            assert len(made.problems) == RECORDS
            continue
        assert not made.problems
        as_columns = [version_chains.proto_row(version, one) for one in values] if form == "protobuf" else values
        expected = [rows_of(form, one, version, fitting[-1:], columns)[0] for one in as_columns]
        assert pa.table(dict(made.columns)).select(list(columns)).to_pylist() == expected, (version, fitting[-1])
