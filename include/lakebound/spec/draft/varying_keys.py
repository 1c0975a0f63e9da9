"""Objects whose keys are data, such as ids: a MAP holds them, where a STRUCT would need a field for each key. Pure."""

from __future__ import annotations

from lakebound.spec.draft.observation import Seen

LEAST_KEYS = 20
"""With fewer different keys, an object has fields."""
LEAST_OBJECTS = 5
MOST_SHARE = 0.25
"""A key that more of the objects have is a field."""
_NUMBERS = {"integer", "number"}


def map_values(seen: Seen) -> Seen | None:
    """Return all values of objects whose keys vary; None where the keys are fields, or the values of several kinds.

    Args:
        seen: A field that holds objects alone.
    """
    objects, keys = seen.kinds["object"], seen.fields
    if objects < LEAST_OBJECTS or len(keys) < LEAST_KEYS:
        return None
    if any(one.present > MOST_SHARE * objects for one in keys.values()):
        return None
    values = Seen()
    for one in keys.values():
        values.include(one)
    kinds = {kind for kind, count in values.kinds.items() if count and kind != "null"}
    return values if len(kinds) == 1 or kinds == _NUMBERS else None
