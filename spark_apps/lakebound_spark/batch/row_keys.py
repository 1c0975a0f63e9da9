"""Whether the key of a store is known of a record without a value: what a transform computes of a value, nobody can."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType

from lakebound.landing.to_stores.record_keys import whole_key_of
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.tombstones import DELETE
from lakebound_spark.batch.transform_plan import passes_on


def key_refusal(spec: PipelineSpec, output: DataFrame) -> str | None:
    """Return why ``null_values: delete`` would not find the rows of a record; None where it does, or is not asked for.

    Args:
        spec: The pipeline.
        output: What its transform made of records under ``transform_plan.SOURCE_ALIAS``.
    """
    if spec.null_values != DELETE or not spec.to_stores:
        return None
    key = spec.to_stores[0].key
    if key not in output.columns:
        return None  # the store says so
    if not passes_on(output, key):
        return (
            f"makes the column {key!r} anew, which is the key of to_stores: with null_values: delete the key of a record in "
            f"Kafka must be the key of its row; pass on the column of that name as it is, or use null_values: skip"
        )
    if isinstance(output.schema[key].dataType, BinaryType) and whole_key_of(spec, key) is None:
        return (
            f"passes on {key!r}, the key of to_stores, as bytes that JSON has in Base64, and whether the key of a record in "
            f"Kafka is in it, too, nobody can tell: null_values: delete needs a text, a whole number or a date"
        )
    return None
