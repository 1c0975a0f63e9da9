"""The rows of a batch on their way to topics: each has its JSON beside its columns, made by Spark in every lane."""

from __future__ import annotations

from collections import Counter
from functools import wraps

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakebound.landing.to_topics.messages import JSON_COLUMN
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound_spark.batch.transform import Transform
from lakebound_spark.column_names import column_named

_OPTIONS = {
    "ignoreNullFields": "true",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""The formats by default cut times to milliseconds. The others are the defaults here, and are said because the settings of a
session must not change what is in a topic."""


def with_json(transform: Transform) -> Transform:
    """Return a transform that also gives each row as JSON, without ``_kafka``, in a column of its own.

    Args:
        transform: The pipeline's.
    """

    @wraps(transform)
    def wrapped(frame: DataFrame) -> DataFrame:
        output = transform(frame)
        if not isinstance(output, DataFrame) or max(Counter(output.columns).values(), default=0) > 1:
            return output  # a mistake of the transform's, which is told where its output is looked at
        columns = [column_named(name) for name in output.columns if name != KAFKA_COLUMN]
        return output.select("*", F.to_json(F.struct(*columns), _OPTIONS).alias(JSON_COLUMN))

    return wrapped


def without_json(output: StructType) -> StructType:
    """Return the columns of the rows as tables get them."""
    return StructType([field for field in output.fields if field.name != JSON_COLUMN])
