"""What a proof says of the rows of closed windows."""

from __future__ import annotations

import pytest

from lakebound.inspection.proof.result import Proof, TableProof
from lakebound.inspection.proof.windows import NOT_COMPARED, ComparedWindows, with_windows

TABLE = "delta:iot.minutes"
PROOF = Proof(
    pipeline="minutes",
    level="entries",
    tables=(
        TableProof(table=TABLE, source="entry", notes=("first", NOT_COMPARED)),
        TableProof(table="iceberg:iot.minutes", source="entry", notes=(NOT_COMPARED,)),
        TableProof(table="delta:quarantine.minutes", role="quarantine", source="entry"),
    ),
)


def told(found: ComparedWindows) -> TableProof:
    one, other, quarantine = with_windows(PROOF, {TABLE: found}).tables
    assert (other, quarantine) == PROOF.tables[1:], "nobody has compared them"
    assert NOT_COMPARED not in one.notes and one.notes[0] == "first"
    return one


def test_rows_as_kafka_gives_them_are_a_note() -> None:
    one = told(ComparedWindows(rows=12, computed=12, until_ms=60_000))
    assert one.ok and one.notes[1:] == (
        "12 rows of closed windows are as Kafka's records give them: windows that end at or before 1970-01-01 00:01:00 UTC, "
        "without late records",
    )


def test_what_kafka_no_longer_has_is_said() -> None:
    one = told(ComparedWindows(rows=12, computed=7, until_ms=60_000, after_ms=30_000, one_way=True))
    assert one.ok and "end after 1970-01-01 00:00:30 UTC and at or before" in one.notes[1]
    assert "earlier windows were not compared" in one.notes[2] and "no column of functions.window" in one.notes[3]


@pytest.mark.parametrize(("missing", "surplus"), [(1, 1), (2, 0), (0, 3)])
def test_rows_that_differ_are_a_problem_with_examples(missing: int, surplus: int) -> None:
    one = told(ComparedWindows(missing=missing, surplus=surplus, examples=("missing sensor=s1", "found sensor=s2")))
    [problem] = one.problems
    assert not one.ok and problem.startswith(
        "windows that end at or before 1970-01-01 00:00:00 UTC: "
        f"{missing} rows that Kafka's records give are not in the table, and {surplus} rows of"
    )
    assert problem.endswith("Examples: missing sensor=s1; found sensor=s2") and one.windows_compared


def test_why_nothing_was_compared_is_a_note() -> None:
    one = told(ComparedWindows(not_compared="it has landed no window yet"))
    assert one.ok and one.notes[1:] == ("the rows of closed windows were not compared: it has landed no window yet",)
    assert one.windows_compared is False


def test_the_proof_is_by_the_rows_where_those_of_all_tables_were_compared() -> None:
    compared = ComparedWindows(rows=12, computed=12, until_ms=60_000)
    every = [one.table for one in PROOF.tables[:2]]
    assert with_windows(PROOF, dict.fromkeys(every, compared)).level == "rows"
    assert with_windows(PROOF, {every[0]: compared, every[1]: ComparedWindows(not_compared="why")}).level == "entries"
