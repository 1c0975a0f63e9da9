"""Values of table properties, which are texts that anybody may have set. Pure."""

from __future__ import annotations

from collections.abc import Mapping


def number(properties: Mapping[str, str], name: str) -> int | None:
    """Return a property as a whole number; None where it is not set, or none."""
    text = properties.get(name, "").strip()
    return int(text) if text.isdigit() else None


def is_true(properties: Mapping[str, str], name: str) -> bool:
    """Whether a property is switched on."""
    return properties.get(name, "").strip().lower() in ("true", "auto")


def is_false(properties: Mapping[str, str], name: str) -> bool:
    """Whether a property is switched off."""
    return properties.get(name, "").strip().lower() == "false"
