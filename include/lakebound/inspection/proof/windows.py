"""What a deep proof says of closed windows: the rows of a table beside those that Kafka's records give now. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from lakebound.frozen import Frozen
from lakebound.inspection.proof.result import Proof, TableProof
from lakebound.spec.times import in_utc

NOT_COMPARED = (
    "not checked: whether the rows of closed windows are right. Its entries are compared with each other and with the "
    "quarantine; --deep computes the windows again from Kafka, and compares the rows"
)
"""What a proof by the entries does not say of a pipeline with state."""


class ComparedWindows(Frozen):
    """The rows of one table beside those of a batch that the same transform makes of Kafka's records, without the late ones.

    Attributes:
        rows: Rows of the table that were compared.
        computed: Rows that the records give.
        missing: Rows that the records give and the table has not, or not as often.
        surplus: Rows that the table has, or has more often, and the records do not give.
        examples: A few of both, as text.
        after_ms: Windows that end after it were compared; None: all.
        until_ms: Windows that end at or before it.
        one_way: Whether ``surplus`` is not known: Kafka has deleted records, and the rows do not say of which window they are.
        not_compared: Why nothing was compared; None where it was.
    """

    rows: int = 0
    computed: int = 0
    missing: int = 0
    surplus: int = 0
    examples: tuple[str, ...] = ()
    after_ms: int | None = None
    until_ms: int = 0
    one_way: bool = False
    not_compared: str | None = None

    @property
    def span(self) -> str:
        """Which windows were compared."""
        since = "" if self.after_ms is None else f"after {in_utc(self.after_ms)} and "
        return f"windows that end {since}at or before {in_utc(self.until_ms)}"


def with_windows(proof: Proof, found: Mapping[str, ComparedWindows]) -> Proof:
    """Return the proof of a pipeline with state with what its rows say.

    Args:
        proof: By the entries.
        found: By the table's id.
    """
    tables = tuple(_with_rows(one, found[one.table]) if one.table in found else one for one in proof.tables)
    level = "rows" if all(one.windows_compared for one in tables if one.role == "target") else "entries"
    return proof.model_copy(update={"tables": tables, "level": level})


def _with_rows(proof: TableProof, found: ComparedWindows) -> TableProof:
    notes = tuple(note for note in proof.notes if note != NOT_COMPARED)
    proof = proof.model_copy(update={"notes": notes})
    if found.not_compared is not None:
        note = f"the rows of closed windows were not compared: {found.not_compared}"
        return proof.adding(notes=[note], windows_compared=False)
    if found.missing or found.surplus:
        examples = f". Examples: {'; '.join(found.examples)}" if found.examples else ""
        problem = (
            f"{found.span}: {found.missing:,} rows that Kafka's records give are not in the table, and {found.surplus:,} rows "
            f"of the table are not given by Kafka's records; a wrong row counts in both{examples}"
        )
        return proof.adding(problems=[problem], windows_compared=True)
    notes = (f"{found.computed:,} rows of closed windows are as Kafka's records give them: {found.span}, without late records",)
    if found.after_ms is not None:
        notes += ("earlier windows were not compared: Kafka has deleted records of them, or other code has made their rows",)
    if found.one_way:
        notes += (
            "surplus rows were not searched for, because the output has no column of functions.window, so that rows of earlier "
            "windows cannot be recognised",
        )
    return proof.adding(notes=notes, windows_compared=True)
