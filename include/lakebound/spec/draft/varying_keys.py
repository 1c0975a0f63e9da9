"""Objects whose keys are data, such as ids: a MAP holds them, where a STRUCT would need a field for each key. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lakebound.spec.draft.observation import Seen

LEAST_KEYS = 20
"""With fewer different keys, an object has fields."""
LEAST_OBJECTS = 5
MOST_SHARE = 0.25
"""A key that more of the objects have is a field."""
_NUMBERS = {"integer", "number"}


def varying_keys(fields: Mapping[str, Seen], objects: int) -> Collection[str]:
    """Return the keys that are data: many different ones, each in few of the objects, whatever other fields these have.

    Args:
        fields: What is seen of each key.
        objects: How many objects there are.
    """
    rare = {name for name, one in fields.items() if one.present <= MOST_SHARE * objects}
    return rare if objects >= LEAST_OBJECTS and len(rare) >= LEAST_KEYS else ()


def map_values(seen: Seen) -> Seen | None:
    """Return all values of objects whose keys all vary; None where some are fields, or the values of several kinds.

    Args:
        seen: A field that holds objects alone.
    """
    if not seen.fields or len(varying_keys(seen.fields, seen.kinds["object"])) < len(seen.fields):
        return None
    values = Seen()
    for one in seen.fields.values():
        values.include(one)
    kinds = {kind for kind, count in values.kinds.items() if count and kind != "null"}
    return values if len(kinds) == 1 or kinds == _NUMBERS else None
