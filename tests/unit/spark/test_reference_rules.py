"""What is decided of reference data: when it is refreshed, kept or refused."""

from __future__ import annotations

import pytest

from lakebound_spark.reference.rules import MOST_BYTES, MOST_ROWS, ReferenceFacts, Step, is_due, next_step, problem_in

TYPES = {"id": "int64", "name": "string"}


@pytest.mark.parametrize(("last_look", "due"), [(0.0, True), (69.9, True), (70.0, True), (70.1, False)])
def test_a_source_is_looked_at_when_its_interval_is_over(last_look: float, due: bool) -> None:
    assert is_due(last_look, 30.0, 100.0) is due


@pytest.mark.parametrize(
    ("in_use", "refused", "found", "step"),
    [
        ("1", None, "1", "keep"),
        ("1", None, "2", "read"),
        ("1", "2", "2", "still_refused"),
        ("1", "2", "3", "read"),
        ("1", "2", "1", "keep"),
    ],
)
def test_only_a_version_that_is_new_is_read(in_use: str, refused: str | None, found: str, step: Step) -> None:
    assert next_step(in_use, refused, found) == step


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        (ReferenceFacts(TYPES, MOST_ROWS, MOST_BYTES), None),
        (ReferenceFacts({**TYPES, "new": "bool"}, 1, 1), None),
        (ReferenceFacts(TYPES, MOST_ROWS + 1, 1), "500,001 rows"),
        (ReferenceFacts(TYPES, 1, 2 * MOST_BYTES), "64 MiB"),
        (ReferenceFacts({"name": "string"}, 1, 1), "no column id"),
        (ReferenceFacts(TYPES, 3, 1, null_keys=2), "2 rows have no value in the key (id)"),
        (ReferenceFacts(TYPES, 3, 1, doubled_keys=1), "1 rows have the key (id) of another row"),
        (ReferenceFacts({"id": "int64"}, 1, 1), "lost the columns name"),
        (ReferenceFacts({**TYPES, "name": "binary"}, 1, 1), "name from string to binary"),
    ],
)
def test_what_keeps_a_version_from_being_used(facts: ReferenceFacts, problem: str | None) -> None:
    found = problem_in(facts, ("id",), TYPES)
    assert found is None if problem is None else problem in (found or "")


def test_at_a_start_there_are_no_columns_to_keep() -> None:
    assert problem_in(ReferenceFacts({"id": "int64"}, 1, 1), ("id",)) is None
