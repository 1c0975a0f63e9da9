"""Places whose tables lie in an object store: a bucket of the tests' S3 server."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import yaml

from lakebound.settings import Settings
from lakebound.spec.connection import SecretRef
from lakebound.spec.warehouse import StoreSpec, WarehouseSpec
from lakebound.spec.warehouses_file import warehouses_file
from lakebound.tables.places import Places
from tests.support.s3.access import Server
from tests.support.s3.running import S3Server
from tests.support.streams.pipelines import Pipeline

KEY_ID, SECRET = "LAKEBOUND_SECRET_STORE_KEY_ID", "LAKEBOUND_SECRET_STORE_KEY"
"""The variables in which Lakebound finds the server's key."""


def tell_key(server: Server) -> None:
    """Put the server's key where the warehouse says that it is."""
    os.environ[KEY_ID], os.environ[SECRET] = server.access_key.access_key_id, server.access_key.secret_access_key


def warehouse_in(server: Server, bucket: str) -> WarehouseSpec:
    """Return a warehouse in a bucket."""
    store = StoreSpec(
        endpoint=server.endpoint,
        region=server.region,
        access_key_id=SecretRef(env=KEY_ID),
        secret_access_key=SecretRef(env=SECRET),
    )
    return WarehouseSpec(location=f"s3://{bucket}/lake", store=store)


def stored(pipeline: Pipeline, server: S3Server, bucket: str) -> Pipeline:
    """Return a pipeline whose tables lie in a bucket: its machine has a ``warehouses.yaml`` that says so."""
    tell_key(server)
    return in_warehouse(pipeline, warehouse_in(server, bucket))


def in_warehouse(pipeline: Pipeline, warehouse: WarehouseSpec) -> Pipeline:
    """Return a pipeline whose machine has a ``warehouses.yaml`` with a warehouse in which its tables are."""
    folder = pipeline.settings.home.parent
    settings = replace(pipeline.settings, pipelines=folder / "pipelines")
    write_warehouse(settings, warehouse)
    return replace(pipeline, settings=settings, spec=pipeline.spec.model_copy(update={"warehouse": "bucket"}))


def write_warehouse(settings: Settings, warehouse: WarehouseSpec) -> None:
    """Write a ``warehouses.yaml`` with one warehouse, of the name ``bucket``."""
    said = warehouse.model_dump(mode="json", exclude_none=True)
    warehouses_file(settings).write_text(yaml.safe_dump({"warehouses": {"bucket": said}}))


def places_in(server: S3Server, bucket: str, home: Path) -> Places:
    """Return places of which nothing exists yet; their tables will be in the bucket."""
    tell_key(server)
    return Places(home=home, warehouse=warehouse_in(server, bucket))
