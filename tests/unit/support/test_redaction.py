"""What is told of errors in alerts, incidents and Airflow: their kind, and nothing that a record holds."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest

from lakebound.errors import InvalidSpecError, LakeboundError
from lakebound.redaction import WHERE_THE_REST_IS, redacted

SECRET = "4111-1111-card"


class SparkException(Exception):
    pass


class Py4JJavaError(Exception):
    pass


CAST = f"""[STREAM_FAILED] Query [id = 1] terminated with exception: [CAST_INVALID_INPUT] The value '{SECRET}' of the type
"STRING" cannot be cast to "INT" because it is malformed. SQLSTATE: 22018"""
JAVA = f"""An error occurred while calling o77.save.
: org.apache.spark.SparkException: Job aborted due to stage failure: {SECRET}
Caused by: java.lang.NumberFormatException: For input string: "{SECRET}"
"""
UNRESOLVED = "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `totl` cannot be resolved. Did you mean `total`?"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (SparkException(CAST), "SparkException (STREAM_FAILED, CAST_INVALID_INPUT); "),
        (SparkException(f"[USER_RAISED_EXCEPTION] [{SECRET.upper()}]"), "SparkException (USER_RAISED_EXCEPTION); "),
        (Py4JJavaError(JAVA), "Py4JJavaError (SparkException, NumberFormatException); "),
        (ValueError(f"invalid literal for int() with base 10: '{SECRET}'"), "ValueError; "),
        (pa.ArrowInvalid(f"Could not convert '{SECRET}' with type str"), "ArrowInvalid; "),
        (KeyError(SECRET), "KeyError; "),
    ],
)
def test_what_quotes_a_record_is_told_by_its_kind(error: Exception, sentence: str) -> None:
    assert redacted(error) == sentence + WHERE_THE_REST_IS


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (LakeboundError("said with care"), "said with care"),
        (InvalidSpecError(["a", "b"]), "a\nb"),
        (SparkException(UNRESOLVED), f"SparkException: {UNRESOLVED}"),
        (sqlite3.OperationalError("database is locked"), "OperationalError: database is locked"),
        (
            ConnectionRefusedError(errno.ECONNREFUSED, "refused"),
            f"ConnectionRefusedError: [Errno {errno.ECONNREFUSED}] refused",
        ),
        (
            OSError(errno.ENOSPC, "No space left on device", str(Path(f"/lake/orders/card={SECRET}/part-1.parquet"))),
            f"OSError: [Errno {errno.ENOSPC}] No space left on device: '/lake/orders/card=…/part-1.parquet'",
        ),
        (
            Exception("Generic error: No space left on device (os error 28)"),
            "Exception: Generic error: No space left on device (os error 28)",
        ),
    ],
)
def test_what_a_person_on_call_needs_is_told_in_full(error: Exception, sentence: str) -> None:
    assert redacted(error) == sentence
