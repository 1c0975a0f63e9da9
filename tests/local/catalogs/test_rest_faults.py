"""A REST catalog: what is lost on the way, tokens that expire, who is refused, and what others do meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.catalogs.installations import Installation, Store, in_rest
from tests.support.catalogs.rest_server import CLIENT_SECRET, Fault, RestServer
from tests.support.streams.long_form import each_value_once
from tests.support.tables.local_tables import Lander, lander, make_table
from tests.support.tables.restoring import put_back, three_batches, version_of

from lakebound.errors import (
    CatalogRefusedError,
    CatalogUnavailableError,
    CommitFailedError,
    CommitRefusedError,
)
from lakebound.spec.table import TableSpec
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.iceberg.rest import RestLedgerCatalog
from lakebound.tables.outages import passes
from lakebound.tables.table import open_table

pytestmark = each_value_once

TABLE = "shop.orders"


@pytest.fixture(params=["token"])
def installation(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installation]:
    with pytest.MonkeyPatch.context() as secrets:
        made = in_rest(tmp_path, Store(str(tmp_path / "lake")), secrets, request.param)
        yield made
        made.close()


@pytest.fixture
def server(installation: Installation) -> RestServer:
    assert installation.rest is not None
    return installation.rest


@pytest.mark.parametrize("status", [0, 409, 500, 502, 503, 504])
@pytest.mark.parametrize("takes_effect", [False, True])
def test_a_commit_without_a_right_answer_lands_the_batch_once(
    installation: Installation, server: RestServer, app: Lander, status: int, takes_effect: bool
) -> None:
    """A 409 that took effect: a gateway has repeated the request, and the second one was refused."""
    app.land(0, 10)
    server.faults.append(Fault("POST", "/tables/orders", status, takes_effect))
    assert app.land(10, 20).attempts == (1 if takes_effect else 2)
    assert not server.faults
    app.land(20, 30)
    assert installation.offsets(TABLE) == list(range(30))


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_redirected_commit_is_refused_and_the_ledger_says_that_nothing_landed(
    installation: Installation, server: RestServer, app: Lander, status: int
) -> None:
    app.land(0, 10)
    server.faults += [Fault("POST", "/tables/orders", status)] * app.attempts
    with pytest.raises(
        CommitFailedError,
        match=r"redirects a request for a change to http://127\.0\.0\.1.*correct catalog\.uri in warehouses\.yaml",
    ):
        app.land(10, 20)
    assert installation.offsets(TABLE) == list(range(10))


@pytest.mark.parametrize("status", [307, 308])
def test_a_redirect_that_keeps_the_request_is_followed(server: RestServer, app: Lander, status: int) -> None:
    server.faults.append(Fault("POST", "/tables/orders", status))
    assert app.land(0, 10).attempts == 1


def test_an_answer_that_does_not_show_the_commit_is_no_success(
    installation: Installation, server: RestServer, app: Lander, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as that of a proxy which has made a reading of a commit."""
    app.land(0, 10)
    commit = server._commit

    def reads_once(identifier: tuple[str, ...], asked: Any) -> tuple[int, Any]:
        monkeypatch.setattr(server, "_commit", commit)
        return 200, server._told(*server.tables[identifier])

    monkeypatch.setattr(server, "_commit", reads_once)
    assert app.land(10, 20).attempts == 2
    assert installation.offsets(TABLE) == list(range(20))


def test_a_commit_is_one_request(server: RestServer, app: Lander) -> None:
    app.land(0, 10)
    server.requests.clear()
    app.land(10, 20)
    assert [method for method, _ in server.requests] == ["POST"]


def test_the_history_is_what_the_catalog_tells(installation: Installation, app: Lander, spec: TableSpec) -> None:
    for start in range(0, 50, 10):
        app.land(start, start + 10)
    own = [found.version for found in app.table.entries()]
    assert own == [found.version for found in lander(spec, installation.at).table.entries()] and len(own) == 7
    plain = installation.plain().load_table(TABLE)
    assert own == [str(one.snapshot_id) for one in reversed(plain.snapshots())]


@pytest.mark.parametrize("installation", ["oauth2"], indirect=True)
def test_a_token_that_expired_is_renewed(installation: Installation, server: RestServer, app: Lander) -> None:
    app.land(0, 10)
    server.forget_tokens()
    assert app.land(10, 20).attempts == 1
    assert ("POST", "/v1/oauth/tokens") in server.requests


@pytest.mark.parametrize("installation", ["oauth2"], indirect=True)
def test_a_wrong_secret_is_a_refusal_that_names_the_field(
    installation: Installation, spec: TableSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEBOUND_SECRET_OF_CATALOG", "quite another one")
    with pytest.raises(CatalogRefusedError, match=r"unknown client|invalid_client") as found:
        open_table(spec, installation.at).exists()
    assert "catalog.oauth2 in warehouses.yaml" in str(found.value) and not passes(found.value)
    assert "quite another one" not in str(found.value) and CLIENT_SECRET not in str(found.value)


def test_a_token_that_is_unknown_is_a_refusal(
    installation: Installation, spec: TableSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEBOUND_SECRET_OF_CATALOG", "quite another one")
    with pytest.raises(CatalogRefusedError, match=r"correct catalog\.token in warehouses\.yaml") as found:
        open_table(spec, installation.at).exists()
    assert "quite another one" not in str(found.value)


def test_a_catalog_that_is_away_passes(installation: Installation, server: RestServer, app: Lander, spec: TableSpec) -> None:
    server.faults.append(Fault("GET", "/tables/orders", 503))
    with pytest.raises(CatalogUnavailableError) as found:
        open_table(spec, installation.at).exists()
    assert passes(found.value)
    server.faults += [Fault("POST", "/tables/orders", 0), *[Fault("GET", "/tables/orders", 0)] * 3]
    app.land(0, 10)
    assert installation.offsets(TABLE) == list(range(10))


def test_a_rewind_to_a_snapshot_that_expires_meanwhile_is_refused(
    installation: Installation, server: RestServer, spec: TableSpec
) -> None:
    app = three_batches(spec, installation.at)
    old = int(version_of(app.table, 10).version)

    def expire() -> None:
        server.before_commit = lambda: None
        server.expire(("shop", "orders"), {old})

    server.before_commit = expire
    with pytest.raises(CommitRefusedError, match="has expired"):
        put_back(spec, installation.at, 10)
    assert installation.offsets(TABLE) == list(range(30))
    assert "lakebound-rewind" not in installation.plain().load_table(TABLE).refs()


def test_a_rewind_leaves_no_tag(installation: Installation, spec: TableSpec) -> None:
    three_batches(spec, installation.at)
    put_back(spec, installation.at, 10)
    assert set(installation.plain().load_table(TABLE).refs()) == {"main"}
    assert installation.offsets(TABLE) == list(range(10))


def test_the_files_have_the_ids_that_a_catalog_gives_the_columns(
    installation: Installation, server: RestServer, spec: TableSpec
) -> None:
    server.own_ids = True
    make_table(spec, installation.at)
    app = lander(spec, installation.at)
    app.land(0, 10)
    read = installation.plain().load_table(TABLE).scan(selected_fields=("id", "city")).to_arrow()
    assert sorted(read["id"].to_pylist()) == list(range(10)) and {*read["city"].to_pylist()} == {f"city {n}" for n in range(3)}
    columns = app.table.layout().columns
    assert columns is not None and columns.field("id").metadata == {b"PARQUET:field_id": b"101"}


def test_a_new_table_s_commit_says_the_highest_id_of_its_columns(
    installation: Installation, server: RestServer, spec: TableSpec
) -> None:
    make_table(spec, installation.at)
    (told,) = (one for body in server.commits for one in body["updates"] if one["action"] == "add-schema")
    assert told["last-column-id"] == 14, "servers such as Nessie refuse a schema without it"


def test_keys_that_are_handed_out_are_told(installation: Installation, server: RestServer, app: Lander) -> None:
    catalog = open_catalog(installation.at)
    assert isinstance(catalog, RestLedgerCatalog)
    assert not catalog.vended(("shop", "orders"))
    server.vends = {"s3.access-key-id": "key", "s3.secret-access-key": "secret", "client.region": "r"}
    assert catalog.vended(("shop", "orders")) == {"s3.access-key-id"}
    app.land(0, 10)
    assert installation.offsets(TABLE) == list(range(10))
