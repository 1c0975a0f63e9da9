"""What a pipeline's commits cost in an object store."""

from __future__ import annotations

import pytest

from lakebound.inspection.store_cost import batch_requests, store_cost
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.warehouse import PricesSpec, StoreSpec, WarehouseSpec

BUCKET = WarehouseSpec(location="s3://lake/x")


def spec(freshness: str = "1s", *formats: str) -> PipelineSpec:
    return PipelineSpec.model_validate(
        {
            "pipeline": "orders",
            "topics": ["orders"],
            "connection": {"bootstrap_servers": "kafka:9092"},
            "freshness": freshness,
            "value": {"format": "json", "schema": "id BIGINT"},
            "tables": [{"format": one, "name": "sales.orders"} for one in formats or ("delta",)],
            **({"schedule": "@daily"} if freshness == "available_now" else {}),
        }
    )


def test_requests_and_dollars_follow_from_the_interval_and_the_tables() -> None:
    cost = store_cost(spec("1s", "delta", "iceberg"), BUCKET)
    assert cost is not None
    assert cost.per_batch == batch_requests(["delta", "iceberg"])
    assert (cost.per_batch.writes, cost.per_batch.reads) == (pytest.approx(6.2), pytest.approx(4.4))
    assert cost.requests_per_hour == pytest.approx(3600 * 10.6)
    assert cost.dollars_per_month == pytest.approx(3600 * 730 * (6.2 * 0.005 + 4.4 * 0.0004) / 1000)
    assert cost.sentence() == (
        "a batch into 2 tables of the object store is 10.6 requests, at most 38,160 an hour, 86 dollars a month"
    )


@pytest.mark.parametrize(("freshness", "dollars"), [("250ms", "129"), ("1s", "32"), ("10s", "3.22"), ("1m", "0.54")])
def test_the_page_has_the_figures_of_the_default_prices(freshness: str, dollars: str) -> None:
    cost = store_cost(spec(freshness), BUCKET)
    assert cost is not None
    assert cost.sentence().endswith(f", {dollars} dollars a month")


def test_a_schedule_has_a_price_for_each_thousand_batches() -> None:
    cost = store_cost(spec("available_now"), BUCKET)
    assert cost is not None
    assert (cost.requests_per_hour, cost.dollars_per_month) == (None, None)
    assert cost.sentence() == "a batch into one table of the object store is 6.5 requests; 1,000 batches cost 0.01 dollars"


def test_a_server_of_one_s_own_sends_no_bill_unless_its_prices_are_said() -> None:
    own = StoreSpec(endpoint="http://minio:9000")
    cost = store_cost(spec(), WarehouseSpec(location="s3://lake", store=own))
    assert cost is not None
    assert (cost.requests_per_hour, cost.dollars_per_month) == (3600 * 6.5, None)
    priced = own.model_copy(update={"prices": PricesSpec(dollars_per_1000_writes=1, dollars_per_1000_reads=0)})
    cost = store_cost(spec(), WarehouseSpec(location="s3://lake", store=priced))
    assert cost is not None
    assert cost.dollars_per_month == pytest.approx(3600 * 730 * 2.1 / 1000)


def test_a_folder_costs_nothing() -> None:
    assert store_cost(spec(), WarehouseSpec(location="/lake")) is None
