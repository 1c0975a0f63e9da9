"""Which properties an author of a pipeline may give a table."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from lakebound.spec.table import TableSpec

PERMITTED = {
    "delta": ["delta.logRetentionDuration", "delta.appendOnly", "delta.checkpointInterval", "owner"],
    "iceberg": [
        "commit.retry.num-retries",
        "history.expire.max-snapshot-age-ms",
        "write.metadata.metrics.column.id",
        "write.parquet.compression-codec",
        "owner",
    ],
}
REFUSED = {
    "delta": [
        "delta.constraints.positive",
        "delta.feature.variantType",
        "delta.universalFormat.enabledFormats",
        "delta.coordinatedCommits.commitCoordinator-preview",
        "option.path",
        "spark.sql.partitionProvider",
    ],
    "iceberg": [
        "write.py-location-provider.impl",
        "write.location-provider.impl",
        "py-io-impl",
        "io-impl",
        "metrics-reporter-impl",
        "encryption.key-id",
        "s3.endpoint",
        "schema.name-mapping.default",
        "write.data.path",
        "write.parquet.writer-impl",
        "engine.hive.lock-enabled",
    ],
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in PERMITTED.items() for name in names])
def test_what_is_on_the_list_is_taken(kind: str, name: str) -> None:
    made = TableSpec.model_validate({"format": kind, "name": "shop.orders", "properties": {name: "1"}})
    assert made.properties == {name: "1"}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in REFUSED.items() for name in names])
def test_what_is_not_on_the_list_is_refused_with_the_way_out(kind: str, name: str) -> None:
    with pytest.raises(ValidationError, match=r"ALTER TABLE|names code") as refused:
        TableSpec.model_validate({"format": kind, "name": "shop.orders", "properties": {name: "1"}})
    assert name in str(refused.value)
