"""What Spark is told of the Iceberg catalog: of the embedded one all, of any other nothing."""

from __future__ import annotations

import pytest
from tests.support.tables.maintained import maintained_pipeline

from lakebound.landing.batch_command import CatalogNotSharedError, batch_conf, check_shared
from lakebound.operations.maintenance.submission import maintenance_orders
from lakebound.settings import load_settings
from lakebound.spec.warehouse import RestCatalogSpec


def test_spark_is_told_nothing_of_a_catalog_that_it_does_not_open() -> None:
    settings = load_settings()
    orders = maintenance_orders(maintained_pipeline({}), settings, "maintain-test")
    check_shared("iceberg:shop.orders", orders.places)
    assert batch_conf(orders, settings)["spark.sql.catalog.ice.type"] == "jdbc"
    catalog = RestCatalogSpec(type="rest", uri="https://catalog.example.com")
    elsewhere = orders.places.warehouse.model_copy(update={"catalog": catalog})
    places = orders.places.model_copy(update={"warehouse": elsewhere})
    told = batch_conf(orders.model_copy(update={"places": places}), settings)
    assert not [name for name in told if name.startswith("spark.sql.catalog")]
    with pytest.raises(CatalogNotSharedError, match="Manifests and delete files are not rewritten"):
        check_shared("iceberg:shop.orders", places)
