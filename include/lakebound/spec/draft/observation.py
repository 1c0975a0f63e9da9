"""What is seen of one field in sampled records: which kinds of values, how large, of which form. Pure."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from lakebound.formats.epoch_units import Unit, unit_of
from lakebound.formats.times import wrong_date, wrong_time

Form = Literal["empty", "date", "time", "decimal", "other"]

MOST_VALUES = 12
"""Maximum number of different texts remembered per field."""
MOST_DEEP = 100
"""Levels of lists and objects in a value that are looked into; a JSON parser may return ten times as many."""
_DATE = re.compile(r"^\d{4}-\d\d-\d\d$")
_TIME = re.compile(r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-](0\d|1[0-7])(:?[0-5]\d)?)?$")
_DECIMAL = re.compile(r"^-?\d{1,38}\.\d{1,18}$")


@dataclass
class Seen:
    """All values of one field.

    Attributes:
        present: How often the field was there.
        kinds: How often with a value of each kind: null, boolean, integer, number, text, array, object.
        forms: Of its texts.
        units: Of its integers: in which unit each may be a time.
        least: Its smallest integer.
        most: Its largest integer.
        before: Most digits before the point, of numbers and of texts that are decimals.
        after: Digits after the point, by how often.
        largest: The largest magnitude of a number.
        texts: Its first different texts.
        fields: Of its objects.
        element: Of its arrays.
        distinct: Hashes of its integers and texts.
    """

    present: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    forms: Counter[Form] = field(default_factory=Counter)
    units: Counter[Unit | None] = field(default_factory=Counter)
    least: int = 0
    most: int = 0
    before: int = 0
    after: Counter[int] = field(default_factory=Counter)
    largest: Decimal = Decimal(0)
    texts: Counter[str] = field(default_factory=Counter)
    fields: dict[str, Seen] = field(default_factory=dict)
    element: Seen | None = None
    distinct: set[int] = field(default_factory=set)

    @property
    def is_unique(self) -> bool:
        """Whether all integers and texts differ, and there are several."""
        return len(self.distinct) == self.kinds["integer"] + self.kinds["text"] > 1

    def add(self, value: Any, deep: int = MOST_DEEP) -> None:
        """Take a value into account; a number with a point must be a ``Decimal``.

        Args:
            value: The value.
            deep: How many levels of lists and objects are looked into.
        """
        self.present += 1
        if value is None:
            self.kinds["null"] += 1
        elif isinstance(value, bool):
            self.kinds["boolean"] += 1
        elif isinstance(value, int):
            self._add_integer(value)
        elif isinstance(value, Decimal):
            self._add_number(value)
        elif isinstance(value, str):
            self._add_text(value)
        elif isinstance(value, list):
            self.kinds["array"] += 1
            self.element = self.element or Seen()
            for inside in value if deep else ():
                self.element.add(inside, deep - 1)
        elif isinstance(value, dict):
            self.kinds["object"] += 1
            for name, inside in value.items() if deep else ():
                self.fields.setdefault(name, Seen()).add(inside, deep - 1)
        else:  # NaN and Infinity, which are no JSON
            self.kinds["strange"] += 1

    def include(self, other: Seen) -> None:
        """Take all values of another field into account, as if they were of this one."""
        if other.kinds["integer"]:
            first = not self.kinds["integer"]
            self.least = other.least if first else min(self.least, other.least)
            self.most = other.most if first else max(self.most, other.most)
        self.present += other.present
        for own, others in (
            (self.kinds, other.kinds),
            (self.forms, other.forms),
            (self.units, other.units),
            (self.after, other.after),
        ):
            own.update(others)  # type: ignore[arg-type]
        self.before, self.largest = max(self.before, other.before), max(self.largest, other.largest)
        self.distinct |= other.distinct
        for text, count in other.texts.items():
            if text in self.texts or len(self.texts) <= MOST_VALUES:
                self.texts[text] += count
        for name, inside in other.fields.items():
            self.fields.setdefault(name, Seen()).include(inside)
        if other.element is not None:
            self.element = self.element or Seen()
            self.element.include(other.element)

    def _add_integer(self, value: int) -> None:
        first = not self.kinds["integer"]
        self.kinds["integer"] += 1
        self.distinct.add(hash(value))
        self.units[unit_of(value)] += 1
        self.least = value if first else min(self.least, value)
        self.most = value if first else max(self.most, value)
        self._measure(Decimal(value))

    def _add_number(self, value: Decimal) -> None:
        self.kinds["number"] += 1
        self._measure(value)

    def _add_text(self, value: str) -> None:
        self.kinds["text"] += 1
        self.distinct.add(hash(value))
        form = form_of(value)
        self.forms[form] += 1
        if form == "decimal":
            self._measure(Decimal(value))
        if len(value) <= MOST_VALUES * 5 and (value in self.texts or len(self.texts) <= MOST_VALUES):
            self.texts[value] += 1

    def _measure(self, value: Decimal) -> None:
        exponent = value.as_tuple().exponent
        self.before = max(self.before, value.adjusted() + 1 if value else 1)
        self.after[max(0, -exponent) if isinstance(exponent, int) else 0] += 1
        self.largest = max(self.largest, value.copy_abs())


def form_of(text: str) -> Form:
    """Return the form of a text; only forms about which there is no doubt have a name."""
    if not text:
        return "empty"
    if _DATE.match(text) and wrong_date(text) is None:
        return "date"
    if _TIME.match(text) and wrong_time(text) is None:
        return "time"
    return "decimal" if _DECIMAL.match(text) else "other"
