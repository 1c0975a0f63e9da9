"""What later commits, and older versions of Lakebound, do with a field of an entry: said once, beside the field. Pure.

A field without a rule says something of its own commit only. A version that does not know it passes it over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel

Rule = TypeVar("Rule")


@dataclass(frozen=True)
class CarriedOn:
    """Every later entry repeats the field, until a commit says it anew.

    A version that does not know the field does not repeat it. Where that would be wrong, it is ``Required``, too.

    Attributes:
        by_resets: Whether a reset repeats it. What a reset decides is what it says itself, and its silence means: nothing.
    """

    by_resets: bool = True


@dataclass(frozen=True)
class Required:
    """An entry that has the field names this in ``requires``: a version that does not know the name refuses the entry.

    Attributes:
        name: What a version must know. It never changes.
    """

    name: str


def carried_on(before: BaseModel | None, draft: BaseModel, *, is_reset: bool) -> dict[str, Any]:
    """Return the carried fields of the next entry: what its draft says, else what the entry before it says.

    Args:
        before: The entry that counts; None where none does.
        draft: The next entry.
        is_reset: Whether that is a reset.
    """
    found = {}
    for name, rule in _ruled(type(draft), CarriedOn):
        is_silent = getattr(draft, name) == _default(type(draft), name)
        if is_silent and before is not None and (rule.by_resets or not is_reset):
            found[name] = getattr(before, name)
    return found


def required_by(entry: BaseModel) -> set[str]:
    """Return what a version must know to read an entry: by its fields that say something."""
    model = type(entry)
    return {rule.name for name, rule in _ruled(model, Required) if getattr(entry, name) != _default(model, name)}


def requirements_of(model: type[BaseModel]) -> frozenset[str]:
    """Return everything that an entry of this model may require by its fields."""
    return frozenset(rule.name for _, rule in _ruled(model, Required))


def _ruled(model: type[BaseModel], kind: type[Rule]) -> Iterator[tuple[str, Rule]]:
    for name, field in model.model_fields.items():
        yield from ((name, rule) for rule in field.metadata if isinstance(rule, kind))


def _default(model: type[BaseModel], name: str) -> Any:
    return model.model_fields[name].get_default(call_default_factory=True)
