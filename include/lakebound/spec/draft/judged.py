"""The file of expectations and the test of a new pipeline. Pure."""

from __future__ import annotations

import json
import re
from string import Template

from lakebound.spec.draft.files import Beginning, comment
from lakebound.spec.draft.inference import Column

MOST_SAMPLES = 3
"""Number of sampled records in the test."""
MOST_BYTES = 2000
_KEY = re.compile(r"(^|_)(id|key|uuid)$|[a-z]I[dD]$")

_EXPECTATIONS = Template("""\
$told
pipeline: $name
on_failure: alert   # or quarantine, which also copies the failing records there; or stop, which also stops the stream
# Each expectation is asked of every table, and one that is not met gives an alert for each. To ask one table only, add to it:
#   tables: [delta:lake.$name]

expectations:
  - expect: fresh
    name: visible within a minute
    max_seconds: 60
    share: 0.99
    severity: info
$found
  # - expect: expect_column_values_to_be_between
  #   kwargs: {column: $number, min_value: 0, mostly: 0.999}
""")

_UNIQUE = Template("""\
  # No two sampled records have the same $column.
  - expect: unique_over_window
    name: $column is unique
    columns: [$quoted]
    over_seconds: 86400
    severity: info
""")

_IN_SET = Template("""\
  # The sample has only these values. Delete this expectation if there can be others.
  - expect: expect_column_values_to_be_in_set
    kwargs: {column: $quoted, value_set: $values}
    severity: info
""")

_TEST = Template('''\
# ruff: noqa: E501
"""Tests the rows that the pipeline ``$name`` makes from records, without Kafka and tables. Run it with pytest."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakebound_spark.testing import land, load_file

pytestmark = pytest.mark.spark  # it starts a local Spark

PIPELINE = load_file((Path(__file__).parent / $pipeline).resolve())

# Records of the topic. Remove personal data, and add records that the transform treats specially.
RECORDS: list[str | bytes] = [
$records]


def test_records_land() -> None:
    landed = land(PIPELINE, RECORDS)
    assert landed.bad == []
    assert {row["_kafka"]["offset"] for row in landed.rows} == set(range(len(RECORDS)))


def test_what_does_not_fit_goes_to_quarantine() -> None:
    landed = land(PIPELINE, [$bad])
    assert [problem.partition(":")[0] for problem in landed.bad] == ["$reason"]
    assert landed.rows == []
''')


def expectations_yaml(new: Beginning) -> str:
    """Return the file of expectations."""
    told = (
        f"What is expected of the records of {new.name}, besides their types. `lakebound check {new.name}` checks this file; "
        f"`lakebound validate {new.name}` validates the landed records. All kinds: docs/how-to/quality.md."
    )
    columns = new.inferred.columns
    key = next((one for one in columns if _is_key(one)), None)
    found = _UNIQUE.substitute(column=key.name, quoted=json.dumps(key.name)) if key is not None else ""
    for one in columns:
        if one.values:
            values = json.dumps(list(one.values), ensure_ascii=False)
            found += _IN_SET.substitute(quoted=json.dumps(one.name), values=values)
    number = next((one.name for one in columns if one.type.startswith(("DECIMAL", "DOUBLE"))), "COLUMN")
    return _EXPECTATIONS.substitute(told=comment(told), name=new.name, found=found.rstrip("\n"), number=number)


def source_of_test(new: Beginning, pipeline: str) -> str:
    """Return the test's module.

    Args:
        new: The pipeline.
        pipeline: The path of its YAML, seen from the test's folder.
    """
    short = [value for value in new.samples if len(value) <= MOST_BYTES][:MOST_SAMPLES]
    shown = [ascii(value.decode()) if new.is_json else repr(value) for value in short]
    return _TEST.substitute(
        name=new.name,
        pipeline=json.dumps(pipeline),
        records="".join(f"    {text},\n" for text in shown),
        bad='"[]"' if new.is_json else "None",
        reason="not_an_object" if new.is_json else "null_value",
    )


def _is_key(column: Column) -> bool:
    return column.is_required and column.is_unique and _KEY.search(column.name) is not None
