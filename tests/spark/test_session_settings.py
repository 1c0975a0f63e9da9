"""What a transform sets in Spark's session is put back, and refused where it decides rows: by whatever way it is called."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import lakebound.errors as errors
import transforms
from lakebound.errors import TransformRefusedError
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch.local_transform import LocalTransform
from lakebound_spark.batch.plan_keeper import PlanKeeper
from lakebound_spark.batch.transform import load_transform, planned_input, planned_output

pytestmark = pytest.mark.spark

MODULE = "transforms.settings_of_a_test"
ZONE = "spark.sql.session.timeZone"
DECIDE_ROWS = {
    ZONE: "Asia/Tokyo",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.jsonGenerator.ignoreNullFields": "false",
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConstantFolding",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.storeAssignmentPolicy": "LEGACY",
    "spark.sql.a.setting.of.a.later.version": "1",
}
HARMLESS = {"spark.sql.shuffle.partitions": "7", "spark.sql.adaptive.enabled": "false", "my.own.name": "x"}


def pipeline() -> PipelineSpec:
    return PipelineSpec.model_validate(
        {
            "pipeline": "orders",
            "topics": ["orders"],
            "connection": {"bootstrap_servers": "nowhere:9092"},
            "value": {"format": "json", "schema": "id STRING, at TIMESTAMP"},
            "freshness": "1s",
            "transform": f"{MODULE}.clean",
            "tables": [{"format": "delta", "name": "orders"}],
        }
    )


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], PipelineSpec]]:
    """Write the transform's module, and return the pipeline."""
    monkeypatch.setattr(transforms, "__path__", [*transforms.__path__, str(tmp_path)])

    def write(body: str, *, before: str = "") -> PipelineSpec:
        text = f"from pyspark.sql import SparkSession\n{before}\ndef clean(frame):\n{textwrap.indent(body, '    ')}\n"
        (tmp_path / f"{MODULE.rpartition('.')[2]}.py").write_text(text)
        sys.modules.pop(MODULE, None)
        return pipeline()

    yield write
    sys.modules.pop(MODULE, None)


@pytest.fixture(autouse=True)
def same_settings(session: SparkSession) -> Iterator[None]:
    """After each test the session has the settings that it had."""
    settings = session._jsparkSession.sessionState().conf().settings()
    before = dict(settings)
    yield
    after = dict(settings)
    settings.clear()
    settings.update(before)
    assert after == before


def refused() -> Any:
    return pytest.raises(errors.TransformSettingsError)


WAYS = ("of the frame", "of the process", "by SQL")


@pytest.mark.parametrize(
    ("name", "way"), [*((one, WAYS[at % 3]) for at, one in enumerate(DECIDE_ROWS)), (ZONE, WAYS[1]), (ZONE, WAYS[2])]
)
def test_a_setting_that_decides_rows_is_refused_by_name(
    session: SparkSession, written: Callable[[str], PipelineSpec], name: str, way: str
) -> None:
    value = DECIDE_ROWS[name]
    sets = {
        "of the frame": f"frame.sparkSession.conf.set({name!r}, {value!r})",
        "of the process": f"SparkSession.builder.config({name!r}, {value!r}).getOrCreate()",
        "by SQL": f"frame.sparkSession.sql('SET {name}={value}')",
    }[way]
    spec = written(f"{sets}\nreturn frame")
    with refused() as raised:
        planned_output(session, spec, load_transform(spec))
    assert name in str(raised.value) and raised.value.runbook == "transform-refused" and raised.value.is_refusal


@pytest.mark.parametrize("name", HARMLESS)
def test_a_setting_that_decides_nothing_is_put_back(
    session: SparkSession, written: Callable[[str], PipelineSpec], name: str
) -> None:
    spec = written(f"frame.sparkSession.conf.set({name!r}, {HARMLESS[name]!r})\nreturn frame")
    assert planned_output(session, spec, load_transform(spec)).columns == ["id", "at", "_kafka"]


@pytest.mark.parametrize(
    "body",
    [
        f"frame.sparkSession.conf.unset({ZONE!r})\nreturn frame",
        "frame.sparkSession.sql(\"SET TIME ZONE 'Asia/Tokyo'\")\nreturn frame",
        f"frame.sparkSession.conf.set({ZONE!r}, 'Asia/Tokyo')\nraise ValueError('and fails')",
    ],
)
def test_any_way_to_change_the_time_zone_is_refused(
    session: SparkSession, written: Callable[[str], PipelineSpec], body: str
) -> None:
    spec = written(body)
    with refused() as raised:
        planned_output(session, spec, load_transform(spec))
    assert ZONE in str(raised.value)


def test_a_module_that_sets_something_is_refused_each_time(session: SparkSession, written: Callable[..., PipelineSpec]) -> None:
    sets = f"SparkSession.builder.config({ZONE!r}, 'Asia/Tokyo').getOrCreate()"
    spec = written("return frame", before=sets)
    for _ in range(2):
        with refused() as raised:
            load_transform(spec)
        assert "the import of its module" in str(raised.value)


def test_a_session_of_its_own_is_no_way_around(session: SparkSession, written: Callable[[str], PipelineSpec]) -> None:
    spec = written(
        "other = frame.sparkSession.newSession()\n"
        f"other.conf.set({ZONE!r}, 'Asia/Tokyo')\n"
        "frame.createOrReplaceGlobalTempView('records_of_a_test')\n"
        "return other.sql('select *, cast(at as string) as text from global_temp.records_of_a_test')"
    )
    with pytest.raises(TransformRefusedError, match="session"):
        planned_output(session, spec, load_transform(spec))


def test_a_call_for_rows_that_the_driver_holds_puts_back_what_it_sets_later(
    session: SparkSession, written: Callable[..., PipelineSpec]
) -> None:
    spec = written(
        "calls.append(1)\n"
        f"if len(calls) > 2:\n    frame.sparkSession.conf.set({ZONE!r}, 'Asia/Tokyo')\n"
        "return frame.selectExpr('id', 'cast(at as string) as text', '_kafka')",
        before="calls = []",
    )
    transform, schema = load_transform(spec), planned_input(session, spec).schema
    local = LocalTransform(PlanKeeper(transform, dict), schema)
    rows = planned_input(session, spec).toArrow()
    local(session, rows)
    with refused():
        for _ in range(10):
            local(session, rows)
            local._keeper._known = None  # as after two seconds


def test_a_frame_is_returned_as_it_is(session: SparkSession, written: Callable[[str], PipelineSpec]) -> None:
    spec = written("return frame")
    frame: DataFrame = planned_input(session, spec)
    assert load_transform(spec)(frame) is frame
