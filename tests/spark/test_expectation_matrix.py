"""Each expectation of each column type: what ``check`` accepts is judged as plain Python judges it, and hides nothing else."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.support.streams.long_form import LONG_FORM, short_form
from tests.support.tables.bad_orders import land, make
from tests.support.tables.expectation_cells import Cell, cells, right, rows
from tests.support.tables.local_tables import TOPIC, TOPIC_ID

from lakebound.inspection.validation.expectation_types import JUDGED, family_of, type_mistakes
from lakebound.inspection.validation.expectations import ExpectationFile
from lakebound.inspection.validation.landed_files import line_reader
from lakebound.inspection.validation.line import ValidatedSoFar, due
from lakebound.inspection.validation.run import Batch, make_batch
from lakebound.inspection.validation.submission import validation_orders
from lakebound.inspection.validation.verdict import ExpectationResult
from lakebound.settings import Settings, load_settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.yaml_source import YamlSource
from lakebound.tables.places import places_of
from lakebound.tables.table import KAFKA_TYPE, open_table
from lakebound.tables.type_names import type_name
from lakebound_spark.validate.application import SparkEvaluator

pytestmark = [pytest.mark.spark, pytest.mark.timeout(7_200 if LONG_FORM else 900)]

SPEC = PipelineSpec.model_validate(
    {
        "pipeline": "orders",
        "topics": ["orders"],
        "connection": {"bootstrap_servers": "127.0.0.1:1"},
        "value": {"format": "bytes"},
        "freshness": "500ms",
        "tables": [{"format": "delta", "name": "shop.orders"}],
    }
)
AT_ONCE = 150
"""Cells of one evaluation."""
FEW = 15
"""Of those that cannot be judged: each that fails lets the others be asked once more."""
NEVER_JUDGED = (
    ("expect_column_values_to_match_strftime_format", "int"),
    ("expect_column_quantile_values_to_be_between", "timestamp"),
    ("expect_multicolumn_sum_to_equal", "timestamp"),
)
"""Kind and type of refused cells of the short form: a function in Python raises in the job, Spark has no such metric of the
type, and Spark cannot analyse the expression. Others are answered by a conversion: no timestamp is found in a set of texts."""
QUANTILES = (("expect_column_quantile_values_to_be_between", "int"),)
"""Asked beside them: each evaluates a query of its own."""
ONCE_WRONG = {
    ("expect_column_mean_to_be_between", "tinyint", "whole"),
    ("expect_column_proportion_of_unique_values_to_be_between", "int", "all_null"),
}
"""Kind, type and variant of cells that the long form has found."""


def is_judged(cell: Cell) -> bool:
    """Whether its kind is judged of its type; with other arguments, ``check`` may refuse it all the same."""
    return family_of(cell.type) in JUDGED[cell.kind]


@cache
def asked_of() -> list[Cell]:
    """Return all cells; in the short form, of those that are judged and of the others each kind, type, variant and case."""
    every = list(cells(list(JUDGED)))
    if LONG_FORM:
        return every
    judged = short_form(filter(is_judged, every), lambda cell: [cell.kind, (cell.type, cell.case), (cell.variant, cell.case)])
    others = short_form((cell for cell in every if not is_judged(cell)), lambda cell: [cell.kind, cell.type])
    wrong_once = [cell for cell in every if (cell.kind, cell.type, cell.variant) in ONCE_WRONG]
    return list({cell.label: cell for cell in (*judged, *others, *wrong_once)}.values())


Answers = dict[str, ExpectationResult]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("matrix")
    return replace(load_settings(), home=folder, warehouse=folder / "lake")


@pytest.fixture(scope="module")
def writing(session: SparkSession, as_applications_write: None, settings: Settings) -> Iterator[SparkSession]:
    """The session as an application of validation has it; the rows have landed."""
    plain, at = rows(), places_of(settings, "default")
    kafka = [
        {"topic": TOPIC, "topic_id": TOPIC_ID, "partition": 0, "offset": offset, "timestamp": 10**15, "ordinal": 0}
        for offset in range(plain.num_rows)
    ]
    whole = plain.append_column(pa.field("_kafka", KAFKA_TYPE), pa.array(kafka, KAFKA_TYPE))
    make(SPEC.tables[0], at, whole.schema)
    land(SPEC.tables[0], at, whole, 0)
    before = session.conf.get("spark.sql.ansi.enabled")
    session.conf.set("spark.sql.ansi.enabled", "false")
    yield session
    session.conf.set("spark.sql.ansi.enabled", str(before))


def asked(settings: Settings, session: SparkSession, asking: Sequence[Cell], at_once: int = AT_ONCE) -> Answers:
    """Return the results by label. Evaluations of thousands of expectations at once take more than linear time."""
    answers: Answers = {}
    for group in (asking[first : first + at_once] for first in range(0, len(asking), at_once)):
        began = time.monotonic()
        answers |= asked_at_once(settings, session, group)
        print(f"{len(answers)} of {len(asking)} cells: {time.monotonic() - began:.0f} s for the last {len(group)}", flush=True)
    return answers


def asked_at_once(settings: Settings, session: SparkSession, asking: Sequence[Cell]) -> Answers:
    """Return the results by label, of one evaluation."""
    items = [{"name": cell.label, "expect": cell.kind, "kwargs": cell.kwargs} for cell in asking]
    file = ExpectationFile.model_validate({"pipeline": "orders", "expectations": items})
    file = ExpectationFile.model_validate_json(file.model_dump_json())
    evaluator = SparkEvaluator(validation_orders(SPEC, settings, file, "run"), lambda: session)
    verdict = evaluator.evaluate(batch_of(settings, file))
    return {one.label: one for one in verdict.results}


def batch_of(settings: Settings, file: ExpectationFile) -> Batch:
    """Return the one range that has landed."""
    (table,), at = SPEC.tables, places_of(settings, "default")
    reader = line_reader(table, at)
    assert reader is not None
    found = due(reader.line(lambda position: False), ValidatedSoFar(), max_rows=10**9)
    assert found is not None
    return make_batch(table, found, reader, file.expectations, claim="0c9bd0b4-38f6-4c1c-a0cc-f4ff5e1ddf54")


def refused(settings: Settings, every: Sequence[Cell]) -> set[str]:
    """Return the labels that ``check`` refuses, by the types that the table has."""
    items = [{"name": cell.label, "expect": cell.kind, "kwargs": cell.kwargs} for cell in every]
    file = ExpectationFile.model_validate({"pipeline": "orders", "expectations": items})
    schema = open_table(SPEC.tables[0], places_of(settings, "default")).schema()
    types = {field.name: type_name(field.type) for field in schema}
    found = type_mistakes(file, {"delta:shop.orders": types}, YamlSource({}, {}, ()))
    return {every[int(mistake.keys[1])].label for mistake in found}


def test_what_check_accepts_is_judged_as_plain_python_judges_it(writing: SparkSession, settings: Settings) -> None:
    every = asked_of()
    no = refused(settings, every)
    asking = [cell for cell in every if cell.label not in no]
    answers = asked(settings, writing, asking)
    wrong: dict[str, Any] = {}
    for cell in asking:
        found, (passed, unexpected) = answers[cell.label], right(cell)
        if found.problem or found.passed != passed or (found.is_of_rows and (found.unexpected or 0) != unexpected):
            wrong[cell.label] = (found.problem or (found.passed, found.unexpected), (passed, unexpected))
    counted = Counter(right(cell).passed for cell in asking)
    print(f"{len(every)} cells: {len(no)} refused, {counted[True]} met, {counted[False]} not met")
    assert wrong == {}, "\n".join(f"{label}: {what}" for label, what in wrong.items())
    fewest = 50 if LONG_FORM else 12
    assert min(*counted.values(), len(no)) > fewest, "hardly anything was asked: nothing was tested"
    assert {cell.kind for cell in asking} == set(JUDGED)


def test_one_that_cannot_be_judged_is_a_problem_and_hides_no_other(writing: SparkSession, settings: Settings) -> None:
    every = [cell for cell in cells(list(JUDGED)) if LONG_FORM or (cell.kind, cell.type) in (*NEVER_JUDGED, *QUANTILES)]
    no = refused(settings, every)
    unfit = [cell for cell in every if cell.label in no and cell.variant == "whole"]
    sound = [cell for cell in every if cell.label not in no and "quantile" in cell.kind]
    if not LONG_FORM:
        unfit, sound = [cell for cell in unfit if cell.case == "met"], [cell for cell in sound if cell.variant == "whole"]
    answers = asked(settings, writing, [*unfit, *sound], FEW if LONG_FORM else AT_ONCE)
    assert {cell.case for cell in sound} == {"met", "not_met"}
    for cell in sound:
        assert (answers[cell.label].problem, answers[cell.label].passed) == ("", right(cell).passed), cell.label
    ended = Counter("could not be judged" if answers[cell.label].problem else "answered" for cell in unfit)
    print(f"{len(unfit)} refused cells asked all the same: {dict(ended)}")
    surely = {cell.label for cell in unfit if (cell.kind, cell.type) in NEVER_JUDGED}
    assert len(surely) >= len(NEVER_JUDGED) and not [label for label in surely if not answers[label].problem]
