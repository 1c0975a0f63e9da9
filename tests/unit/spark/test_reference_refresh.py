"""A refresh that fails: people are told its kind, and the application's log has the whole error."""

from __future__ import annotations

import logging
from typing import Any

import pyarrow as pa
import pytest

from lakebound.control.progress import ReferenceProgress
from lakebound.redaction import WHERE_THE_REST_IS
from lakebound.spec.reference import ReferenceSpec
from lakebound_spark.reference.book import Reference, ReferenceBook
from lakebound_spark.reference.loaded import Loaded, UnusableReferenceError, Version
from lakebound_spark.reference.refresh import ReferenceWatch
from lakebound_spark.reference.sources import Source

SPEC = ReferenceSpec.model_validate({"format": "delta", "name": "crm.devices", "key": ["id"]})
LOADED = Loaded(Version("1", "1"), pa.table({"id": [1]}))


def told_after(error: Exception) -> ReferenceProgress:
    """Return what is told of a reference whose source fails."""

    def look() -> Version:
        raise error

    told: dict[str, ReferenceProgress] = {}
    spark: Any = None
    book = ReferenceBook({"devices": Source("devices", SPEC, look, lambda: LOADED)}, {"devices": Reference(LOADED, spark, 0.0)})
    watch = ReferenceWatch(spark, book, told.update)
    watch.look("devices")
    watch.tell()
    return told["devices"]


def test_the_log_has_the_error_of_which_only_the_kind_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        told = told_after(pa.ArrowInvalid("Casting would lose data: 4711"))
    assert told.problem is not None
    assert WHERE_THE_REST_IS in told.problem and "4711" not in told.problem
    assert "Casting would lose data: 4711" in caplog.text


def test_a_problem_that_is_told_as_a_whole_needs_no_trace(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        told = told_after(UnusableReferenceError("its files changed"))
    assert told.problem == "its files changed"
    assert "its files changed" in caplog.text and "Traceback" not in caplog.text
