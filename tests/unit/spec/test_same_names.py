"""Names that Spark takes for one name, and others. The expected ones are Java's (``String.equalsIgnoreCase``)."""

from __future__ import annotations

import pytest

from lakebound.spec.ddl import ddl_mistakes
from lakebound.spec.same_names import as_compared
from lakebound.tables.schemas import unusable_names

SAME = [
    ("id", "ID"),
    ("größe", "GRÖßE"),
    ("σ", "ς"),
    ("ſ", "S"),
    ("\u212a", "k"),
    ("ı", "i"),
    ("İ", "I"),
    ("ẞ", "ß"),
    ("µ", "μ"),
]
APART = [("straße", "strasse"), ("ŉ", "ʼn"), ("ﬁ", "fi"), ("e\u0301", "é"), ("a", "а")]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_names_that_differ_by_case_are_one(one: str, other: str) -> None:
    assert as_compared(one) == as_compared(other)
    assert [*unusable_names("delta", [one, other])] == [other]


@pytest.mark.parametrize(("one", "other"), APART)
def test_other_names_are_two_columns(one: str, other: str) -> None:
    assert as_compared(one) != as_compared(other)
    assert unusable_names("delta", [one, other]) == {}
    assert not ddl_mistakes(f"`{one}` STRING, `{other}` STRING")
