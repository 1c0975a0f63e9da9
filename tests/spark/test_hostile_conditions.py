"""SQL that somebody wrote into a file of expectations reads nothing of the machine: no file, no variable, no method of Java."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakebound_spark.session import _without_java_calls, guarded_conditions

pytestmark = pytest.mark.spark

CALLS = ("reflect", "REFLECT", "`reflect`", "java_method", "try_reflect", "builtin.reflect", "system.builtin.reflect")
CALLED = ("identifier('reflect')", "identifier('java_' || 'method')", "spark_catalog.default.reflect", "session.reflect")
SOURCES = (
    *("text.`{}`", "binaryFile.`{}`", "csv.`file://{}`", "spark_catalog.text.`{}`", "identifier('text.`{}`')"),
    *("`org.apache.spark.sql.execution.datasources.text.TextFileFormat`.`{}`", "json.`http://127.0.0.1:9{}`"),
)
PLACES = (
    "(select count(*) from {}) = 1",
    "exists (select * from {})",
    "(with a as (select * from {}) select count(*) from a) = 1",
)
MARKUP = "'<!DOCTYPE a [<!ENTITY x SYSTEM \"file://{}\">]><a><b>&x;</b></a>'"


@pytest.fixture(scope="module")
def guarded(session: SparkSession) -> SparkSession:
    """A session of its own, whose functions no other test needs."""
    own = session.newSession()
    _without_java_calls(own)
    return own


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text("hunter2")
    return path


@pytest.mark.parametrize("name", [*CALLS, *CALLED])
def test_no_method_of_java_is_called(guarded: SparkSession, name: str) -> None:
    with guarded_conditions(guarded), pytest.raises(AnalysisException, match=r"ROUTINE|NAMESPACE"):
        guarded.range(1).select(F.expr(f"{name}('java.lang.System', 'getenv', 'HOME') = 'x'"))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("source", SOURCES)
def test_no_file_is_a_table(guarded: SparkSession, file: Path, source: str, place: str) -> None:
    with guarded_conditions(guarded), pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        guarded.range(1).select(F.expr(place.format(source.format(file))))


@pytest.mark.parametrize("value", ["xpath_string({}, '/a')", "from_xml({}, 'b STRING').b"])
def test_no_entity_of_xml_is_a_file(guarded: SparkSession, file: Path, value: str) -> None:
    with guarded_conditions(guarded):
        found = guarded.range(1).select(F.expr(value.format(MARKUP.format(file))).alias("v")).collect()[0]["v"]
    assert "hunter2" not in (found or "")


@pytest.mark.parametrize(
    "name", ["env:PATH", "system:user.dir", "spark.app.id", "hiveconf:spark.app.id", "sparkconf:spark.app.id"]
)
def test_no_variable_is_put_into_a_condition(guarded: SparkSession, name: str) -> None:
    """Of the environment, of Java and of Spark: the applications' keys are among them."""
    written = f"${{{name}}}"
    with guarded_conditions(guarded):
        assert guarded.range(1).select(F.expr(f"'{written}'").alias("v")).collect()[0]["v"] == written
    assert guarded.conf.get("spark.sql.variable.substitute") == "true", "a transform's own SQL is read as it was"
