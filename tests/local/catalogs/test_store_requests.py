"""Iceberg tables in an object store: what a commit asks of it, and whatever goes wrong with one of its requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.catalogs.installations import Installation, in_postgresql, in_rest, store_on
from tests.support.s3.faults import Fault, slow_down
from tests.support.s3.running import S3Server
from tests.support.streams.long_form import each_value_once
from tests.support.tables.local_tables import Lander, offsets

from lakebound.inspection.query import PipelineTables, run_query
from lakebound.inspection.store_cost import batch_requests
from lakebound.tables.iceberg.health import read_facts
from lakebound.tables.misread import ColumnsLook
from lakebound.tables.table import open_table

pytestmark = each_value_once

TABLE = "shop.orders"
_PLACES = {"data": "*.parquet", "manifest": "*-m0.avro", "list": "*/snap-*.avro", "metadata": "*.metadata.json"}


@pytest.fixture(params=["postgresql", "rest"])
def installation(request: pytest.FixtureRequest, tmp_path: Path, s3_server: S3Server) -> Iterator[Installation]:
    with pytest.MonkeyPatch.context() as secrets:
        if request.param == "postgresql":
            made = in_postgresql(request.getfixturevalue("postgresql"), tmp_path, store_on(s3_server), secrets)
        else:
            made = in_rest(tmp_path, store_on(s3_server), secrets)
        yield made
        s3_server.faults.clear()
        made.close()


@pytest.fixture
def app(app: Lander) -> Lander:
    """It has landed a batch."""
    app.land(0, 10)
    return app


def test_a_commit_asks_once_for_each_file(installation: Installation, app: Lander, s3_server: S3Server) -> None:
    s3_server.faults.delay(0.2)
    with s3_server.counters.counting() as counted:
        app.land(10, 20)
    # The catalog's own server writes the metadata where it is REST, as it likes.
    own = counted.only(lambda request: request.key_class in ("data", "iceberg manifest", "iceberg manifest list"))
    assert sorted(own.by("operation", "key_class").items()) == [
        (("PutObject", "data"), 1),
        (("PutObject", "iceberg manifest"), 1),
        (("PutObject", "iceberg manifest list"), 1),
    ]
    assert own.round_trips == 1, "data, manifest and list go side by side"
    if installation.proxy is not None:
        assert counted.by("operation", "key_class")[("PutObject", "iceberg metadata")] == 1
        assert counted.total == 4 and counted.round_trips == 2


def test_columns_of_files_in_a_bucket_are_compared(app: Lander) -> None:
    app.land(10, 20)
    assert app.table.misread_columns() == ColumnsLook(2, 2)


def test_the_reckoned_requests_of_a_commit_are_those_of_many(
    installation: Installation, app: Lander, s3_server: S3Server
) -> None:
    with s3_server.counters.counting() as counted:
        for start in range(10, 510, 10):
            app.land(start, start + 10)
    # What a REST catalog asks for itself is not counted but for the metadata that it must write.
    own = counted.only(lambda one: one.method != "DELETE" and one.key_class not in ("iceberg metadata", "other"))
    assert own.total / 50 + 1 == pytest.approx(batch_requests(["iceberg"]).total, abs=0.1)
    assert {request.method for request in own.requests} == {"PUT"}, "nothing is read"


@pytest.mark.parametrize("place", _PLACES)
@pytest.mark.parametrize("fault", ["500 after the effect", "503", "cut after the effect"])
def test_a_fault_at_a_request_of_a_commit_lands_the_batch_once(
    installation: Installation, app: Lander, s3_server: S3Server, place: str, fault: str
) -> None:
    if place == "metadata" and installation.proxy is None:
        pytest.skip("the catalog writes it")
    chosen = {"operations": ("PutObject",), "key": _PLACES[place]}
    kinds = {
        "500 after the effect": Fault("status", status=500, after_effect=True, **chosen),  # type: ignore[arg-type]
        "503": slow_down(**chosen),
        "cut after the effect": Fault("disconnect", after_effect=True, **chosen),  # type: ignore[arg-type]
    }
    number = s3_server.faults.add(kinds[fault])
    app.land(10, 20)
    assert s3_server.faults.hits(number) == 1
    app.land(20, 30)
    assert installation.offsets(TABLE) == list(range(30))


def test_a_store_that_refuses_for_longer_than_a_client_asks_lands_the_batch_once(
    installation: Installation, app: Lander, s3_server: S3Server
) -> None:
    number = s3_server.faults.add(Fault("status", operations=("PutObject",), key="*/snap-*.avro", count=8))
    committed = app.land(10, 20)
    assert s3_server.faults.hits(number) == 8 and committed.attempts == 2
    assert installation.offsets(TABLE) == list(range(20))


def test_the_table_is_read_back_by_a_query_the_ledger_and_its_facts(installation: Installation, app: Lander) -> None:
    for start in range(10, 150, 10):
        app.land(start, start + 10)
    tables = {"orders": PipelineTables([app.table.spec], installation.at)}
    assert run_query(f"SELECT count(*), max(id) FROM {TABLE}", tables).rows == ((150, 149),)
    other = open_table(app.table.spec, installation.at)
    assert other.read_ledger().coverage == offsets(0, 150)
    assert other.scan_kafka().num_rows == 150
    facts = read_facts(app.table.spec, installation.at, 0)
    assert facts is not None and facts.rows == 150
