"""Objects whose keys are data, such as ids: a MAP holds them, where a STRUCT would need a field for each key. Pure."""

from __future__ import annotations

from collections.abc import Collection

from lakebound.spec.draft.observation import Seen

LEAST_KEYS = 20
"""With fewer different keys, an object has fields."""
LEAST_OBJECTS = 5
MOST_SHARE = 0.25
"""A key that more of the objects have is a field."""
_NUMBERS = {"integer", "number"}


def keys_vary(keys: Collection[Seen], objects: int) -> bool:
    """Whether keys are data: many different ones, each in few of the objects.

    Args:
        keys: What is seen of each key.
        objects: How many objects there are.
    """
    is_enough = objects >= LEAST_OBJECTS and len(keys) >= LEAST_KEYS
    return is_enough and all(one.present <= MOST_SHARE * objects for one in keys)


def map_values(seen: Seen) -> Seen | None:
    """Return all values of objects whose keys vary; None where the keys are fields, or the values of several kinds.

    Args:
        seen: A field that holds objects alone.
    """
    if not keys_vary(seen.fields.values(), seen.kinds["object"]):
        return None
    values = Seen()
    for one in seen.fields.values():
        values.include(one)
    kinds = {kind for kind, count in values.kinds.items() if count and kind != "null"}
    return values if len(kinds) == 1 or kinds == _NUMBERS else None
