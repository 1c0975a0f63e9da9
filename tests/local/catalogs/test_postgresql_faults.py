"""The SQL catalog on a real PostgreSQL: what is lost on the way, who is refused, and an outage."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import inspect
from tests.support.catalogs.installations import Installation, Store, in_postgresql
from tests.support.catalogs.postgresql import PASSWORD, PostgreSQL
from tests.support.tables.local_tables import Lander
from tests.support.waiting import HANGS_SECONDS, wait_until

from lakebound.errors import CatalogRefusedError, CatalogUnavailableError, CommitUnknownError
from lakebound.spec.table import TableSpec
from lakebound.spec.warehouse import SqlCatalogSpec
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.outages import is_outage, passes
from lakebound.tables.places import Places
from lakebound.tables.table import open_table

SWAP = b"UPDATE iceberg_tables"


@pytest.fixture
def installation(postgresql: PostgreSQL, tmp_path: Path) -> Iterator[Installation]:
    with pytest.MonkeyPatch.context() as secrets:
        made = in_postgresql(postgresql, tmp_path, Store(str(tmp_path / "lake")), secrets)
        yield made
        made.close()


@pytest.mark.parametrize("has_run", [False, True])
def test_a_connection_that_is_lost_at_the_swap_lands_the_batch_once(
    installation: Installation, app: Lander, has_run: bool
) -> None:
    proxy = installation.proxy
    assert proxy is not None
    app.land(0, 10)
    if has_run:
        proxy.cut_after = SWAP
    else:
        proxy.cut_before = SWAP
    assert app.land(10, 20).attempts == (1 if has_run else 2)
    assert proxy.cut_after is None and proxy.cut_before is None, "the connection was cut"
    app.land(20, 30)
    assert installation.offsets("shop.orders") == list(range(30))


def test_a_database_that_is_away_passes_and_the_batch_lands_once(installation: Installation, app: Lander) -> None:
    proxy = installation.proxy
    assert proxy is not None
    app.land(0, 10)
    done = threading.Event()

    def land() -> None:
        app.land(10, 20)
        done.set()

    before = proxy.statements
    with proxy.away():
        landing = threading.Thread(target=land)
        landing.start()
        assert not done.wait(timeout=1)
    landing.join(timeout=HANGS_SECONDS)
    assert done.is_set() and proxy.statements > before
    assert installation.offsets("shop.orders") == list(range(20))


def test_an_outage_is_told_as_one(installation: Installation, app: Lander, monkeypatch: pytest.MonkeyPatch) -> None:
    assert installation.proxy is not None
    with installation.proxy.away():
        with pytest.raises(CatalogUnavailableError) as found:
            open_table(app.table.spec, installation.at).exists()
        monkeypatch.setattr("lakebound.tables.commit._reread", _gives_up)
        with pytest.raises(CommitUnknownError) as unknown:
            app.land(0, 10)
    assert passes(found.value) and is_outage(found.value) and passes(unknown.value)
    assert PASSWORD not in str(found.value) + str(found.value.__cause__) + repr(found.value)


def _gives_up(*arguments: object) -> None:
    raise CommitUnknownError("iceberg:shop.orders", 1, "its ledger cannot be read")


def test_a_wrong_password_is_a_refusal_that_names_the_field(
    installation: Installation, spec: TableSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEBOUND_SECRET_OF_CATALOG", "quite another one")
    with pytest.raises(CatalogRefusedError, match=r"catalog\.username and catalog\.password in warehouses\.yaml") as found:
        open_table(spec, installation.at).exists()
    assert "quite another one" not in str(found.value) and not passes(found.value) and not is_outage(found.value)


def test_a_database_that_is_not_there_is_a_refusal(installation: Installation, spec: TableSpec, tmp_path: Path) -> None:
    catalog = installation.at.warehouse.catalog
    assert isinstance(catalog, SqlCatalogSpec)
    uri = f"{catalog.uri.rpartition('/')[0]}/not_there"
    other = installation.at.warehouse.model_copy(update={"catalog": catalog.model_copy(update={"uri": uri})})
    with pytest.raises(CatalogRefusedError, match=r"correct catalog\.uri in warehouses\.yaml"):
        open_catalog(Places(home=tmp_path, warehouse=other))


def test_nobody_else_of_the_process_sees_the_password(installation: Installation, app: Lander) -> None:
    catalog = open_catalog(installation.at)
    told = f"{catalog!r} {catalog.properties} {catalog.engine!r} {catalog.engine.url!r} {installation.at!r}"  # type: ignore[union-attr]
    assert PASSWORD not in told and "%20password" not in told


def test_who_only_looks_makes_no_tables_in_the_database(installation: Installation, spec: TableSpec) -> None:
    assert not open_table(spec, installation.at.read_only()).exists()
    catalog = open_catalog(installation.at.read_only())
    assert not inspect(catalog.engine).get_table_names()  # type: ignore[union-attr]


def test_many_that_open_an_empty_database_at_once(installation: Installation, spec: TableSpec) -> None:
    from lakebound.tables.iceberg.postgresql import open_postgresql

    catalog = installation.at.warehouse.catalog
    assert isinstance(catalog, SqlCatalogSpec)
    found: list[object] = []
    openers = [
        threading.Thread(
            target=lambda: found.append(open_postgresql(catalog, installation.at.iceberg_folder, looks_only=False))
        )
        for _ in range(4)
    ]
    for one in openers:
        one.start()
    wait_until(lambda: len(found) == 4, 60, "four openers of the catalog")
