"""Columns that were made for some of the records at a time, put together in the order of the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa


@dataclass(frozen=True)
class Part:
    """Columns of some of the records.

    Attributes:
        columns: By name; all parts have the same.
        places: Positions of the records, as many as each column has values.
    """

    columns: Mapping[str, pa.Array]
    places: Sequence[int]


def together(parts: Sequence[Part]) -> Mapping[str, pa.Array]:
    """Return the columns of all parts, in the order of their records.

    Args:
        parts: At least one; no position is in two of them.
    """
    if len(parts) == 1:
        return parts[0].columns
    order = pa.array(np.argsort([at for part in parts for at in part.places]), pa.int64())
    return {name: pa.concat_arrays([part.columns[name] for part in parts]).take(order) for name in parts[0].columns}
