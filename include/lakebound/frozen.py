"""The bases of all models: immutable values, which differ in what they do with a key that they do not know."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """Immutable, and a key that it does not know is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class FrozenRecord(BaseModel):
    """Immutable, and a key that it does not know is left out: a later version may have written the file."""

    model_config = ConfigDict(frozen=True, extra="ignore")
