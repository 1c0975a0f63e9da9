"""Columns by their exact name: Spark reads a dot in a name as a step into a struct, and a backtick as a quote."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakebound.spec.ddl import quoted


def column_named(name: str) -> Column:
    """Return the column that has exactly this name."""
    return F.col(quoted(name))
