"""The commands that look at a pipeline whose tables lie in an object store; none of them shows a key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from tests.support.s3.running import S3Server
from tests.support.streams.command_line import ORDERS, answer, lakebound
from tests.support.streams.command_line import settings as settings  # a fixture
from tests.support.tables.local_tables import lander, make_table
from tests.support.tables.stored import tell_key, warehouse_in

from lakebound.settings import Settings
from lakebound.spec.load import load_pipeline
from lakebound.tables.places import places_of


@pytest.fixture
def landed(settings: Settings, s3_server: S3Server, s3_bucket: str) -> Callable[..., str]:
    """Land 120 rows in twelve commits, and return what runs a command and gives its output."""
    tell_key(s3_server)
    body = ORDERS | {"warehouse": "bucket", "tables": [{"format": "delta", "name": "shop.orders"}]}
    (settings.pipelines / "orders.yaml").write_text(yaml.safe_dump(body))
    said = warehouse_in(s3_server, s3_bucket).model_dump(mode="json", exclude_none=True)
    Path(settings.pipelines.parent / "warehouses.yaml").write_text(yaml.safe_dump({"warehouses": {"bucket": said}}))
    spec = load_pipeline("orders", settings)
    at = places_of(settings, spec.warehouse)
    make_table(spec.tables[0], at)
    make_table(spec.quarantine_table, at)
    app = lander(spec.tables[0], at)
    app.open()
    for start in range(0, 120, 10):
        app.land(start, start + 10)

    def run(*arguments: str) -> str:
        output = lakebound(*arguments).output
        assert s3_server.access_key.secret_access_key not in output
        return output

    return run


def test_what_is_in_a_store_is_shown(landed: Callable[..., str], s3_bucket: str) -> None:
    assert "orders: valid" in landed("check", "--static", "--storage")
    (table, quarantine) = answer("tables")["tables"]
    assert (table["rows"], table["files"], table["version"]) == (120, 12, "13")
    assert table["path"] == f"s3://{s3_bucket}/lake/delta/shop/orders" and quarantine["rows"] == 0
    shown = landed("tables", "shop.orders")
    assert f"s3a://{s3_bucket}/lake/delta/shop/orders" in shown and "AWS_SECRET_ACCESS_KEY" in shown
    assert landed("query", "select count(*) n, max(id) m from shop.orders", "--csv").split()[:2] == ["n,m", "120,119"]
    assert "ledger_epoch=1" in landed("doctor", "orders")
    assert "14 commits in the tail" in landed("health")
