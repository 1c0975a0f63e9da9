"""What is told of bad records outside of their table: a reason, a column of the schema, and never what a record holds."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import DoubleType, MapType, StringType, StructField, StructType

from lakebound import formats
from lakebound.formats import reasons as formats_reasons
from lakebound.formats import registered
from lakebound.formats.contract import Records
from lakebound.formats.reasons import LATE, LATE_IN_PART
from lakebound_spark.batch import bad_reasons, failing_records, tombstones
from lakebound_spark.batch.bad_reasons import REASONS, column_names, reasons_of, short_reason
from lakebound_spark.batch.record_format import json_format

SCHEMA = StructType(
    [
        StructField("amount", DoubleType()),
        StructField("amount_eur", DoubleType()),
        StructField("m", MapType(StringType(), DoubleType())),
    ]
)
COLUMNS = column_names(SCHEMA, ["key", "header trace-id"])


@pytest.mark.parametrize(
    ("reason", "error", "told"),
    [
        ("does_not_fit", "amount: 'dear' is not a DOUBLE", "does_not_fit: amount"),
        ("does_not_fit", "amount_eur: 'dear' is not a DOUBLE; amount: 'x'", "does_not_fit: amount_eur"),
        ("does_not_fit", "m['iban DE02']: 'x' is not a DOUBLE", "does_not_fit: m"),
        ("does_not_fit", "amounts: 'dear' is not a DOUBLE", "does_not_fit"),
        ("does_not_fit", "a value does not fit the type that the schema gives it", "does_not_fit"),
        ("missing_field", "required but missing or null: amount, m", "missing_field: amount"),
        ("unknown_field", "not in the schema: amount", "unknown_field"),
        ("malformed_json", "not one well-formed JSON value", "malformed_json"),
        ("what a record says", "amount: x", "other"),
        ("not_utf8", "key: the value is not UTF-8: byte 1 of 2 is ff", "not_utf8: key"),
        ("does_not_fit", "header trace-id: is not UTF-8", "does_not_fit: header trace-id"),
        ("does_not_fit", "header of a customer: is not UTF-8", "does_not_fit"),
    ],
)
def test_a_reason_is_short(reason: str, error: str, told: str) -> None:
    assert short_reason(reason, error, COLUMNS) == told


@given(
    st.dictionaries(st.sampled_from(["amount", "amount_eur", "m", "other"]), st.text() | st.dictionaries(st.text(), st.text()))
)
def test_no_value_of_a_record_is_in_a_reason(record: dict[str, object]) -> None:
    problems = json_format(SCHEMA).decoder().decode(Records([None], [json.dumps(record).encode()])).problems
    error = problems[0].detail if problems and problems[0].reason == "does_not_fit" else ""
    rows = pa.table({"reason": ["does_not_fit"], "error": [error]})
    assert set(reasons_of(rows, SCHEMA)) <= {"does_not_fit", *(f"does_not_fit: {name}" for name in COLUMNS.names)}
    assert set(reasons_of(rows, None)) == {"does_not_fit"}


def test_every_reason_that_the_code_gives_is_known() -> None:
    folder = Path(bad_reasons.__file__).parent
    given = {word for path in folder.glob("*.py") for word in re.findall(r'f?"([a-z_0-9]+)\\t', path.read_text())}
    for path in Path(str(formats.__file__)).parent.rglob("*.py"):
        text = path.read_text()
        named = dict(re.findall(r'^([A-Z_]+) = "([a-z_0-9]+)"$', text, re.MULTILINE))
        for word, name in re.findall(r'Problem\(\s*(?:"([a-z_0-9]+)"|([A-Z_]+)\b)', text):
            given.add(word or named.get(name, ""))
    given |= {LATE, LATE_IN_PART}  # by ``MissedWindow``
    for path in folder.glob("*.py"):
        names = re.findall(r'f"\{([A-Z_0-9]+)\}\\t', path.read_text())
        given |= {getattr(formats_reasons, name, failing_records.RAISED) for name in names}
    given |= {registered.NO_SCHEMA_ID, registered.UNKNOWN_SCHEMA, registered.DOES_NOT_FIT}
    given.discard("")  # a constant that another module names
    assert len(given) >= 12
    assert given | {tombstones.REASON} == set(REASONS)
