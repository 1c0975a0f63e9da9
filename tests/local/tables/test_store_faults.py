"""What a store does wrong while a Delta table is written: nothing is missing and nothing is there twice.

The judge is deltalake alone, told by the test where the server is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.support.s3.access import AccessKey
from tests.support.s3.clients import delta_options
from tests.support.s3.faults import Fault, conflict, slow_down
from tests.support.s3.running import S3Server
from tests.support.tables.local_tables import Lander, lander, make_table, offsets
from tests.support.tables.stored import KEY_ID, SECRET, places_in

from lakebound.errors import CommitFailedError
from lakebound.inspection.store_cost import batch_requests
from lakebound.ledger.entry import common, count
from lakebound.spec.table import TableSpec
from lakebound.storage import location, options
from lakebound.tables.outages import passes
from lakebound.tables.places import Places

SPEC = TableSpec(format="delta", name="shop.orders")
REQUESTS_OF_A_COMMIT = 5
FAULTS: dict[str, dict[str, Any]] = {
    "500": {"kind": "status"},
    "500 after the effect": {"kind": "status", "after_effect": True},
    "503": vars(slow_down()),
    "409": vars(conflict()),
    "closed": {"kind": "disconnect"},
    "closed after the effect": {"kind": "disconnect", "after_effect": True},
    "half a body": {"kind": "half body"},
    "no answer": {"kind": "silence"},
    "no answer after the effect": {"kind": "silence", "after_effect": True},
    "late": {"kind": "delay", "seconds": 0.7},
}


@pytest.fixture
def at(s3_server: S3Server, s3_bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """Places in a bucket, for clients with little patience: what they do not overcome alone is what is looked at."""
    for name, value in (("RETRIES", 1), ("RETRY_SECONDS", 0.6), ("TIMEOUT_SECONDS", 0.3)):
        monkeypatch.setattr(options, name, value)
    return places_in(s3_server, s3_bucket, tmp_path)


def landed(server: S3Server, bucket: str) -> list[int]:
    """Return the ids that are in the table, as deltalake reads them."""
    table = DeltaTable(f"s3://{bucket}/lake/delta/shop/orders", storage_options=delta_options(server))
    return sorted(table.to_pyarrow_table(columns=["id"])["id"].to_pylist())


def land_as_a_stream(app: Lander, at: Places, start: int, end: int) -> Lander:
    """Land a batch; after an outage begin from the ledger, as an application does."""
    for _ in range(100):
        try:
            app.land(start, end)
            return app
        except Exception as exc:
            assert passes(exc) or isinstance(exc, CommitFailedError), repr(exc)
        app = open_again(at)
        if count(common(app.view.coverage, offsets(start, end))):
            return app
    raise AssertionError("the batch does not land")


def open_again(at: Places) -> Lander:
    """Return a new handle, as soon as the store answers."""
    for _ in range(100):
        try:
            return lander(SPEC, at)
        except Exception as exc:
            assert passes(exc), repr(exc)
    raise AssertionError("the store does not come back")


@pytest.mark.parametrize("times", [1, 3], ids=["once", "longer than the client tries"])
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_at_any_request_of_a_commit(name: str, times: int, at: Places, s3_server: S3Server, s3_bucket: str) -> None:
    make_table(SPEC, at)
    app = lander(SPEC, at)
    for skipped in range(REQUESTS_OF_A_COMMIT + 1):
        number = s3_server.faults.add(Fault(**FAULTS[name] | {"skip": skipped, "count": times}))
        app = land_as_a_stream(app, at, 10 * skipped, 10 * skipped + 10)
        s3_server.faults.remove(number)
    expected = 10 * (REQUESTS_OF_A_COMMIT + 1)
    app = land_as_a_stream(app, at, expected, expected + 10)
    assert landed(s3_server, s3_bucket) == list(range(expected + 10))


@pytest.mark.parametrize("refuse", [True, False], ids=["refused", "silent"])
def test_a_store_that_is_away_for_a_time(refuse: bool, at: Places, s3_server: S3Server, s3_bucket: str) -> None:
    make_table(SPEC, at)
    app = lander(SPEC, at)
    app.land(0, 10)
    s3_server.faults.go_away(3, refuse=refuse)
    app = land_as_a_stream(app, at, 10, 20)
    app.land(20, 30)
    assert landed(s3_server, s3_bucket) == list(range(30))


def test_keys_that_are_renewed_are_used(
    at: Places, s3_server: S3Server, s3_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = (s3_server.put_access_key(AccessKey(f"TEST{name}", f"secret-{name}")) for name in ("OLD", "NEW"))
    monkeypatch.setattr(location, "REOPEN_SECONDS", 1e-6)
    monkeypatch.setenv(KEY_ID, old.access_key_id)
    monkeypatch.setenv(SECRET, old.secret_access_key)
    make_table(SPEC, at)
    app = lander(SPEC, at)
    app.land(0, 10)
    s3_server.remove_access_key(old.access_key_id)
    with pytest.raises(Exception, match=r"403|refuses") as refused:
        app.table.read_ledger()
    assert not passes(refused.value) and old.secret_access_key not in str(refused.value)
    monkeypatch.setenv(KEY_ID, new.access_key_id)
    monkeypatch.setenv(SECRET, new.secret_access_key)
    app.view = app.table.read_ledger()
    app.land(10, 20)
    assert landed(s3_server, s3_bucket) == list(range(20))


def test_two_round_trips_until_readers_see_a_commit_and_one_to_report_it(
    at: Places, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "TIMEOUT_SECONDS", 20)
    make_table(SPEC, at)
    app = lander(SPEC, at)
    s3_server.faults.delay(0.2)
    trips, requests = [], []
    for start in range(0, 50, 10):  # on a busy machine a thread may come so late that its request follows another
        with s3_server.counters.counting() as counted:
            app.land(start, start + 10)
        (commit,) = (one for one in counted.requests if one.method == "PUT" and one.key_class == "delta commit")
        trips.append((counted.only(lambda one, until=commit.began: one.began <= until).round_trips, counted.round_trips))  # type: ignore[misc]
        requests.append(counted.by("method", "key_class"))
    assert min(trips) == (2, 3)
    assert {
        ("PUT", "data"): 1,
        ("GET", "delta commit"): 2,
        ("PUT", "delta commit"): 1,
        ("HEAD", "delta commit"): 1,
    } in requests


def test_the_reckoned_requests_of_a_commit_are_those_of_many(
    at: Places, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "TIMEOUT_SECONDS", 20)
    make_table(SPEC, at)
    app = lander(SPEC, at)
    for start in range(0, 600, 10):
        app.land(start, start + 10)
        app.table.keep_cheap()
    with s3_server.counters.counting() as counted:  # two log checkpoints are in it
        for start in range(600, 1600, 10):
            app.land(start, start + 10)
            app.table.keep_cheap()
    reads = counted.only(
        lambda one: one.method == "HEAD" or (one.method == "GET" and bool(one.key) and "List" not in one.operation)
    )
    assert reads.total / 100 == pytest.approx(batch_requests(["delta"]).reads, rel=0.1)
    assert (counted.total - reads.total) / 100 == pytest.approx(batch_requests(["delta"]).writes, rel=0.1)
