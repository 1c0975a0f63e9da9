"""The transform of the example pipeline ``orders``."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def clean(orders: DataFrame) -> DataFrame:
    """Return the orders with upper-case currency and the number of items beside the nested items."""
    return orders.withColumns({"currency": F.upper("currency"), "item_count": F.size(F.coalesce("items", F.array()))})
