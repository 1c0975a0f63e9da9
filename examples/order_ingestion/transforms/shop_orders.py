"""The transform of the example ``order_ingestion``: an order, and whether its total is the sum of its items."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def clean(orders: DataFrame) -> DataFrame:
    """Return the orders with their day, the number of items, and whether the total is right."""
    return orders.withColumns(
        {
            "currency": F.upper("currency"),
            "placed_on": F.to_date("placed_at"),
            "item_count": F.size(F.coalesce("items", F.array())),
            "total_is_right": F.coalesce(_sum_of_items() == F.col("total"), F.lit(False)),
        }
    )


def _sum_of_items() -> Column:
    """Return the sum of quantity times price: null as soon as one of them is, and zero without items."""
    zero = F.lit(0).cast("DECIMAL(18,2)")
    return F.aggregate(
        F.coalesce("items", F.array()),
        zero,
        lambda total, item: (total + item["quantity"] * item["unit_price"]).cast("DECIMAL(18,2)"),
    )
