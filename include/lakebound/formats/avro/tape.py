"""What was read of records, in numbers: per part of a schema an array, in the order in which it was read."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
_NONE = np.empty(0, np.int64)


class Tape:
    """Arrays by the slots of parts; of a part that nobody wants there is none.

    The values of a part lie in the order of those of the part around it: of a union's branch only those that are there, of
    items one list after the other, in the order that ``item_order`` says.
    """

    def __init__(self, wanted: Collection[int]) -> None:
        self._wanted = frozenset(wanted)
        self._pieces: dict[int, list[Numbers]] = {}
        self._orders: dict[int, list[Numbers | None]] = {}

    def wants(self, slot: int) -> bool:
        """Whether what is read of a part is needed."""
        return slot in self._wanted

    def add(self, slot: int, values: Numbers) -> None:
        """Add what was read of a part."""
        if slot in self._wanted:
            self._pieces.setdefault(slot, []).append(values)

    def add_items(self, slot: int, counts: Numbers, order: Numbers | None = None) -> None:
        """Add how many items lists have.

        Args:
            slot: Of the lists.
            counts: Of each list.
            order: Which of the items that were read come after each other; None: as they were read.
        """
        if slot in self._wanted:
            self._pieces.setdefault(slot, []).append(counts)
            self._orders.setdefault(slot, []).append(order)

    def values(self, slot: int) -> Numbers:
        """Return what was read of a part."""
        pieces = self._pieces.get(slot, ())
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces) if pieces else _NONE

    def item_order(self, slot: int) -> Numbers | None:
        """Return which of the items of all lists come after each other; None: as they were read."""
        orders = self._orders.get(slot, [])
        if all(order is None for order in orders):
            return None
        found, first = [], 0
        for counts, order in zip(self._pieces[slot], orders, strict=True):
            number = int(counts.sum())
            found.append(first + (np.arange(number) if order is None else order))
            first += number
        return np.concatenate(found)
