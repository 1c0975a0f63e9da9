"""Values of rows in one form, whoever read them."""

from __future__ import annotations

from typing import Any


def plain(value: Any, *, null_lists: bool) -> Any:
    """Return a value in one form, for all readers.

    Args:
        value: What a reader gives: some give a map as a list of structs.
        null_lists: Whether a null list or map is told from an empty one: PyIceberg's reader does not (docs/readers.md).
    """
    if isinstance(value, dict) and set(value) == {"key", "value"}:
        return (value["key"], plain(value["value"], null_lists=null_lists))
    if isinstance(value, dict):
        return {name: plain(one, null_lists=null_lists) for name, one in value.items()}
    if isinstance(value, list):
        items = [plain(one, null_lists=null_lists) for one in value]
        is_map = all(isinstance(one, tuple) for one in items)
        found = sorted(items, key=lambda one: one[0]) if is_map else items
        return found if found or null_lists else None
    if isinstance(value, tuple):
        return (value[0], plain(value[1], null_lists=null_lists))
    if isinstance(value, float):
        return repr(value)  # NaN is itself, and there are two zeros.
    return repr(value.utctimetuple()) + str(value.microsecond) if hasattr(value, "utctimetuple") and value.tzinfo else value
