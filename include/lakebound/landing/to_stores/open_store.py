"""The store that a pipeline names, whatever it is, as a target."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from lakebound.landing.to_stores.store import TargetStore
from lakebound.landing.to_stores.target import StoreTarget
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.to_stores import ToStoreSpec


def connect_store(spec: ToStoreSpec, field: str) -> TargetStore:
    """Return what reads and writes a store; it connects when it is first asked.

    Args:
        spec: The store.
        field: Where the pipeline's YAML names it, for messages.
    """
    # Few pipelines have a store. The client of Redis takes as long to import as all of Lakebound's specification.
    if spec.postgres is not None:
        from lakebound.landing.to_stores.postgres_store import PostgresStore

        return PostgresStore(spec, field)
    from lakebound.landing.to_stores.redis_store import RedisStore

    return RedisStore(spec, field)


def open_store(
    spec: ToStoreSpec,
    pipeline: PipelineSpec,
    *,
    schema: pa.Schema | None = None,
    scratch: Path | None = None,
    check_lease: Callable[[], None] | None = None,
    fills: bool = False,
) -> StoreTarget:
    """Return a store of a pipeline as a target; nothing is connected yet.

    Args:
        spec: The store.
        pipeline: The pipeline, which names it.
        schema: Columns of the files in which rows wait; None for who only looks.
        scratch: Folder for these files; None for who only looks.
        check_lease: Raises LeaseLostError when the lease is gone; None for who only looks.
        fills: Fill it from a table: an incomplete store is used.
    """
    field = f"to_stores[{pipeline.to_stores.index(spec)}]"
    store = connect_store(spec, field)
    return StoreTarget(spec, pipeline.pipeline, store, schema=schema, scratch=scratch, check_lease=check_lease, fills=fills)
