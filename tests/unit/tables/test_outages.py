"""Only what is known to pass by itself is waited out; any other error is refused with a runbook."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake.exceptions import DeltaError

from lakebound.errors import (
    BrokerUnavailableError,
    CommitFailedError,
    CommitUnknownError,
    DiskFullError,
    RetentionPassedError,
    TableMismatchError,
    TableUnreadableError,
)
from lakebound.tables.full_disk import full_disk_error
from lakebound.tables.outages import is_full_disk, is_outage, passes, tells_nothing


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


PASSING = {
    "full disk": OSError(errno.ENOSPC, "No space left on device"),
    "disk that does not answer": OSError(errno.EIO, "Input/output error"),
    "network file system": OSError(errno.ESTALE, "Stale file handle"),
    "timeout": TimeoutError("timed out"),
    "connection": ConnectionResetError("reset by peer"),
    "Rust's number": DeltaError("Generic LocalFileSystem error: No space left on device (os error 28)"),
    "Arrow's number": OSError("Cannot write: [errno 28] no space"),
    "locked catalog": sqlite3.OperationalError("database is locked"),
    "cause": caused(RuntimeError("it failed"), OSError(errno.ENOSPC, "No space left on device")),
    "Kafka away": RuntimeError("org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment"),
    "unknown outcome": CommitUnknownError("delta:a.b", 3, "no answer"),
}
LASTING = {
    "no right": PermissionError(errno.EACCES, "Permission denied"),
    "read-only": OSError(errno.EROFS, "Read-only file system"),
    "no folder": FileNotFoundError(errno.ENOENT, "No such file"),
    "long name": OSError(errno.ENAMETOOLONG, "File name too long"),
    "Rust's number": DeltaError("Generic LocalFileSystem error: Permission denied (os error 13)"),
    "catalog's schema": sqlite3.OperationalError("no such column: iceberg_type"),
    "overflow": OverflowError("date value out of range"),
    "value that sounds like an outage": ValueError("it spans the partitions 'a' and 'database is locked'"),
    "value with a number": pa.ArrowInvalid("cannot read 'os error 28' as a number"),
    "key that sounds so": KeyError("database is locked"),
    "failed": CommitFailedError("delta:a.b", 3, "ValueError: os error 28"),
    "other columns": TableMismatchError("delta:a.b", "database is locked"),
}


@pytest.mark.parametrize("case", PASSING)
def test_it_passes(case: str) -> None:
    assert passes(PASSING[case])


@pytest.mark.parametrize("case", LASTING)
def test_it_would_come_again(case: str) -> None:
    assert not passes(LASTING[case])


REFUSING = {
    "no right": LASTING["no right"],
    "Rust's number of a right": LASTING["Rust's number"],
    "a store's keys": DeltaError(
        "Generic S3 error: Error performing GET http://s/b/k in 3ms - Server returned non-2xx status code: 403 Forbidden: <"
    ),
    "a token that has expired": OSError(
        "Generic S3 error: Error performing GET http://s/b/k in 3ms - Server returned non-2xx status code: 400 Bad Request: <"
    ),
    "cause of a refusal": caused(RuntimeError("it failed"), PermissionError("the store refuses it")),
}
GONE = {
    "no file": LASTING["no folder"],
    "no object": DeltaError(
        "Object at location k not found: Error performing GET http://store/b/k in 3ms - Server returned non-2xx status code: "
        "404 Not Found: <?xml"
    ),
    "torn": ValueError("403 forbidden, error performing"),
    "version": DeltaError("Invalid table version: 403"),
}


@pytest.mark.parametrize("case", [*PASSING, *REFUSING])
def test_what_is_away_or_refuses_says_nothing_of_what_is_there(case: str) -> None:
    assert tells_nothing({**REFUSING, **PASSING}[case])


@pytest.mark.parametrize("case", GONE)
def test_what_is_gone_is_known_to_be(case: str) -> None:
    assert not tells_nothing(GONE[case])


def test_a_refusal_is_an_outage_only_if_it_was_made_of_one() -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    assert is_outage(caused(TableUnreadableError("delta:a.b", "no space"), full))
    assert not is_outage(TableUnreadableError("delta:a.b", "database is locked"))
    refusal = RetentionPassedError("t", 0, 1, 2)
    refusal.__context__ = full
    assert not is_outage(refusal), "it was met while something else was away"
    assert is_outage(BrokerUnavailableError("b", "away")) and not is_outage(None)


FULL = {name: PASSING[name] for name in ("full disk", "Rust's number", "Arrow's number", "cause")} | {
    "quota": OSError(errno.EDQUOT, "Disk quota exceeded"),
    "catalog": sqlite3.OperationalError("database or disk is full"),
    "Spark's scratch": RuntimeError("Job aborted.\nCaused by: java.io.IOException: No space left on device\n\tat java"),
    "made of one": caused(CommitUnknownError("delta:a.b", 3, "its ledger"), OSError(errno.ENOSPC, "No space left on device")),
    "by its class": DiskFullError("table delta:a.b", "/data"),
}


@pytest.mark.parametrize("case", FULL)
def test_a_full_disk_is_known_and_passes(case: str) -> None:
    assert is_full_disk(FULL[case]) and passes(FULL[case])


@pytest.mark.parametrize("case", [*LASTING, "disk that does not answer", "locked catalog", "Kafka away"])
def test_other_errors_are_no_full_disk(case: str) -> None:
    assert not is_full_disk({**PASSING, **LASTING}[case])


def test_an_error_of_our_own_that_was_met_beside_a_full_disk_is_about_something_else() -> None:
    refusal = RetentionPassedError("t", 0, 1, 2)
    refusal.__context__ = OSError(errno.ENOSPC, "No space left on device")
    assert not is_full_disk(refusal) and not is_full_disk(None)
    assert full_disk_error(refusal, "pipeline 'orders'", Path("/")) is None


def test_of_several_disks_the_one_that_the_error_names_is_told() -> None:
    error = OSError(errno.ENOSPC, "No space left on device", "/proc/self/somewhere")
    found = full_disk_error(error, "pipeline 'orders'", Path("/"))
    assert found is not None and "on the disk /proc: " in str(found)


def test_no_error_is_none_that_passes() -> None:
    assert not passes(None)
