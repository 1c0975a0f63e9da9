"""What ``lakebound check`` says of a catalog that fails in a way that nobody foresaw."""

from __future__ import annotations

import pytest

from lakebound.spec.table import TableSpec
from lakebound.spec.warehouse import RestCatalogSpec
from lakebound.tables.catalogs import catalog_problems
from lakebound.tables.places import Places

SECRET = "token-4711"


def test_of_a_catalog_that_fails_its_message_is_not_shown_and_no_log_is_named_that_does_not_exist(
    at: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Places) -> None:
        raise KeyError(SECRET)

    monkeypatch.setattr("lakebound.tables.iceberg.open.open_catalog", fail)
    warehouse = at.warehouse.model_copy(update={"catalog": RestCatalogSpec(type="rest", uri="http://127.0.0.1:1")})
    table = TableSpec(format="iceberg", name="shop.orders")
    (problem,) = catalog_problems(at.model_copy(update={"warehouse": warehouse}), [table])
    assert problem == (
        "the Iceberg catalog cannot be used: KeyError; its message is not shown, as it may quote a record or a secret; "
        "check its address, login and other settings"
    )
