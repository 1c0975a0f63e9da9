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
        "12 rows of closed windows are as Kafka's records give them: windows that end until 1970-01-01 00:01:00 UTC, without "
        "late records",
    )


def test_what_kafka_no_longer_has_is_said() -> None:
    one = told(ComparedWindows(rows=12, computed=7, until_ms=60_000, after_ms=30_000, one_way=True))
    assert one.ok and "end after 1970-01-01 00:00:30 UTC and until" in one.notes[1]
    assert "deleted records of earlier windows" in one.notes[2] and "no column of functions.window" in one.notes[3]


@pytest.mark.parametrize(("missing", "strange"), [(1, 1), (2, 0), (0, 3)])
def test_rows_that_differ_are_a_problem_with_examples(missing: int, strange: int) -> None:
    one = told(ComparedWindows(missing=missing, strange=strange, examples=("missing sensor=s1", "found sensor=s2")))
    [problem] = one.problems
    assert not one.ok and problem.startswith(
        f"{missing} rows of closed windows are missing or wrong, and {strange} rows are not"
    )
    assert problem.endswith("such as missing sensor=s1; found sensor=s2")


def test_why_nothing_was_compared_is_a_note() -> None:
    one = told(ComparedWindows(not_compared="it has landed no window yet"))
    assert one.ok and one.notes[1:] == ("the rows of closed windows were not compared: it has landed no window yet",)
