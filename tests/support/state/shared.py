"""State that machines share: in a bucket of the tests' S3 server."""

from __future__ import annotations

from pathlib import Path

import yaml

from lakebound.control.folder import ControlFolder
from lakebound.spec.state_store import StateStoreSpec
from tests.support.s3.running import S3Server
from tests.support.tables.stored import tell_key, warehouse_in


def shared_state(server: S3Server, bucket: str) -> StateStoreSpec:
    """Return a place for state in a bucket."""
    tell_key(server)
    return StateStoreSpec(location=f"s3://{bucket}/state", store=warehouse_in(server, bucket).store)


def shared_control(server: S3Server, bucket: str, home: Path, pipeline: str = "orders") -> ControlFolder:
    """Return a pipeline's state in a bucket, as a machine with that home sees it."""
    return ControlFolder(home, pipeline, shared_state(server, bucket))


def tell_state(server: S3Server, bucket: str, pipelines: Path) -> dict[str, str]:
    """Return the variables of a machine that shares state in a bucket, whose ``warehouses.yaml`` says how it is reached.

    Args:
        server: Where the bucket is.
        bucket: Its name.
        pipelines: The machine's folder of YAML; the file is beside it.
    """
    tell_key(server)
    warehouse = warehouse_in(server, bucket).model_dump(mode="json", exclude_none=True)
    pipelines.mkdir(parents=True, exist_ok=True)
    (pipelines.parent / "warehouses.yaml").write_text(yaml.safe_dump({"warehouses": {"bucket": warehouse}}))
    return {"LAKEBOUND_STATE": f"s3://{bucket}/state", "LAKEBOUND_PIPELINES": str(pipelines)}
