"""What ``lakebound check`` says of a catalog that is away, refuses its user, or hands out keys."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.catalogs.installations import Installation, Store, in_postgresql, in_rest
from tests.support.catalogs.postgresql import USER, PostgreSQL
from tests.support.tables.local_tables import make_table

from lakebound.spec.table import TableSpec
from lakebound.tables.catalogs import catalog_problems


def test_a_catalog_that_can_be_used_is_no_problem(installation: Installation, spec: TableSpec) -> None:
    assert catalog_problems(installation.at, [spec]) == []
    make_table(spec, installation.at)
    assert catalog_problems(installation.at, [spec]) == []


def test_the_embedded_catalog_is_not_asked(installation: Installation, spec: TableSpec) -> None:
    assert catalog_problems(installation.at, []) == []


def test_a_login_that_is_refused_names_its_field(
    installation: Installation, spec: TableSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEBOUND_SECRET_OF_CATALOG", "quite another one")
    (problem,) = catalog_problems(installation.at, [spec])
    assert "correct catalog." in problem and "quite another one" not in problem


def test_a_database_in_which_the_user_may_not_write(
    postgresql: PostgreSQL, tmp_path: Path, spec: TableSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = in_postgresql(postgresql, tmp_path, Store(str(tmp_path / "lake")), monkeypatch)
    assert made.proxy is not None
    make_table(spec, made.at)
    database = getattr(made.at.warehouse.catalog, "uri", "").rpartition("/")[2]
    postgresql.run(f"\\c {database}\nALTER TABLE iceberg_tables OWNER TO postgres; GRANT SELECT ON iceberg_tables TO {USER};")
    (problem,) = catalog_problems(made.at, [spec])
    assert "may not INSERT, UPDATE, DELETE in iceberg_tables" in problem
    with made.proxy.away():
        (problem,) = catalog_problems(made.at, [spec])
    assert problem.startswith("no answer from the Iceberg catalog")
    made.close()


def test_keys_that_a_catalog_hands_out_are_refused_where_the_warehouse_has_none(
    tmp_path: Path, spec: TableSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = in_rest(tmp_path, Store(str(tmp_path / "lake")), monkeypatch)
    assert made.rest is not None
    make_table(spec, made.at)
    made.rest.vends = {"s3.access-key-id": "key", "s3.secret-access-key": "secret"}
    elsewhere = made.at.warehouse.model_copy(update={"location": "s3://bucket/lake"})
    (problem,) = catalog_problems(made.at.model_copy(update={"warehouse": elsewhere}), [spec])
    assert problem.startswith("store: the catalog hands out keys") and "secret" not in problem.replace("secret_access_key", "")
    made.close()
