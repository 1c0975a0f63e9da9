"""Which errors of Spark's are about values: they have a record to blame, the others have none."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, PythonException

from lakebound.first_line import first_line
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch.failing_records import FirstRaised
from lakebound_spark.batch.raised import MOST_CHARACTERS, Raised, raised_on_values
from lakebound_spark.check.mistakes import RaisedOnRecordsError, failed_on_records

pytestmark = pytest.mark.unit

FRAMES = '\n  An exception was thrown.\nTraceback (most recent call last):\n  File "t.py", line 9, in f\n    int(t)\n    ^^^\n'


class JavaError(Exception):
    """As py4j gives a Java error: with its class, message and cause."""

    def __init__(self, name: str, condition: str | None, message: str, cause: JavaError | None = None) -> None:
        self.name, self.condition, self.message, self.cause = name, condition, message, cause

    def getClass(self) -> JavaError:
        return self

    def getName(self) -> str:
        return self.name

    def getCondition(self) -> str | None:
        return self.condition

    def getMessage(self) -> str:
        return self.message

    def getCause(self) -> JavaError | None:
        return self.cause


def raised_by(name: str, condition: str | None = None, message: str = "", cause: JavaError | None = None) -> Raised | None:
    error = AnalysisException("as Python has it")
    error._origin = JavaError(name, condition, message, cause)
    return raised_on_values(error)


def test_the_first_line_of_an_error_of_values_is_told() -> None:
    cast = ("org.apache.spark.SparkNumberFormatException", "CAST_INVALID_INPUT", "[CAST_INVALID_INPUT] The value 'x'\n== x")
    told = Raised("CAST_INVALID_INPUT", "SparkNumberFormatException: [CAST_INVALID_INPUT] The value 'x'")
    assert raised_by(*cast) == told
    assert raised_by("org.apache.spark.SparkException", None, "Job aborted", JavaError(*cast)) == told
    overflow = JavaError("java.lang.ArithmeticException", None, "long overflow")
    found = raised_by("org.apache.spark.SparkException", None, "Job aborted", overflow)
    assert found == Raised("ArithmeticException", "ArithmeticException: long overflow")


@pytest.mark.parametrize(
    ("name", "condition"),
    [
        ("org.apache.spark.sql.AnalysisException", "TABLE_OR_VIEW_NOT_FOUND"),
        ("org.apache.spark.SparkException", None),
        ("org.apache.spark.SparkException", "INTERNAL_ERROR"),
        ("org.apache.spark.SparkRuntimeException", "INTERNAL_ERROR"),
        ("org.apache.spark.memory.SparkOutOfMemoryError", "UNABLE_TO_ACQUIRE_MEMORY"),
        ("java.lang.IllegalStateException", None),
        ("java.lang.OutOfMemoryError", None),
        ("org.apache.kafka.common.errors.TimeoutException", None),
    ],
)
def test_what_no_record_is_to_blame_for_is_no_error_of_values(name: str, condition: str | None) -> None:
    assert raised_by(name, condition, "words") is None


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("ValueError: invalid literal: 'x'", "ValueError"),
        ("orders.parse.BadOrder: no: 'x'\n  second line", "BadOrder"),
        ("ZeroDivisionError", "ZeroDivisionError"),
        ("ModuleNotFoundError: No module named 'x'", None),
        ("FileNotFoundError: [Errno 2] 'x'", None),
        ("MemoryError", None),
        ("requests.exceptions.ConnectionError: refused", None),
        ("socket.timeout: timed out", None),
        ("requests.exceptions.ReadTimeout: late", None),
        ("urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>", None),
        ("requests.exceptions.HTTPError: 503 Server Error", None),
        ("socket.gaierror: [Errno -2] Name or service not known", None),
        ("ssl.SSLEOFError: EOF occurred", None),
        ("http.client.RemoteDisconnected: closed", None),
        ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 8 GiB", None),
    ],
)
def test_what_a_python_function_raises_on_a_value_is_told_from_what_its_place_raises(line: str, kind: str | None) -> None:
    found = raised_on_values(PythonException(f"{FRAMES}{line}\n"))
    assert found == (Raised(kind, line.splitlines()[0]) if kind else None)


def test_a_long_text_is_cut() -> None:
    found = raised_on_values(PythonException(f"{FRAMES}ValueError: {'x' * 10_000}\n"))
    assert found is not None and len(found.text) == MOST_CHARACTERS


def test_an_error_that_is_not_sparks_is_no_error_of_values() -> None:
    assert raised_on_values(ValueError("the function itself")) is None


MISSING = (
    "\n  An exception was thrown from the Python worker. Please see the stack trace below.\n"
    'Traceback (most recent call last):\n  File "worker.py", line 3, in main\n    import phonenumbers\n'
    "ModuleNotFoundError: No module named 'phonenumbers'\n"
)


def test_where_spark_points_to_a_traceback_its_end_is_told() -> None:
    assert first_line(PythonException(MISSING)) == "ModuleNotFoundError: No module named 'phonenumbers'"
    assert first_line("\n please see the stack trace below, of which there is none") == (
        "please see the stack trace below, of which there is none"
    )


def test_try_names_a_missing_module_and_says_where_to_install_it() -> None:
    told = failed_on_records(orders(), PythonException(MISSING)).what
    assert told == (
        "the transform fails on these records: ModuleNotFoundError: No module named 'phonenumbers'; install the module for "
        "Spark's Python"
    )
    assert failed_on_records(orders(), ValueError("no")).what.endswith("ValueError: no; let it give null for such values")


def test_try_shows_the_value_on_which_the_transform_raises() -> None:
    first = FirstRaised("t/0/7", Raised("E", "E: Text '2026-13-01' could not be parsed"), "E: Text … could not be parsed")
    told = failed_on_records(orders(), RaisedOnRecordsError("all 9 records of a batch", first)).what
    assert "t/0/7: E: Text '2026-13-01' could not be parsed" in told
    assert "lakebound try" not in told and "stop_at" not in told


def orders() -> PipelineSpec:
    """Return a pipeline."""
    return PipelineSpec.model_validate(
        {
            "pipeline": "orders",
            "topics": ["orders"],
            "connection": {"bootstrap_servers": "127.0.0.1:1"},
            "value": {"format": "bytes"},
            "freshness": "1s",
            "tables": [{"format": "delta", "name": "shop.orders"}],
        }
    )
