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
        strange: Rows that the table has, or has more often, and the records do not give.
        examples: A few of both, as text.
        after_ms: Windows that end after it were compared; None: all.
        until_ms: Windows that end until then.
        one_way: Whether ``strange`` is not known: Kafka has deleted records, and the rows do not say of which window they are.
        not_compared: Why nothing was compared; None where it was.
    """

    rows: int = 0
    computed: int = 0
    missing: int = 0
    strange: int = 0
    examples: tuple[str, ...] = ()
    after_ms: int | None = None
    until_ms: int = 0
    one_way: bool = False
    not_compared: str | None = None

    @property
    def span(self) -> str:
        """Which windows were compared."""
        since = "" if self.after_ms is None else f"after {in_utc(self.after_ms)} and "
        return f"windows that end {since}until {in_utc(self.until_ms)}"


def with_windows(proof: Proof, found: Mapping[str, ComparedWindows]) -> Proof:
    """Return the proof of a pipeline with state with what its rows say.

    Args:
        proof: By the entries.
        found: By the table's id.
    """
    tables = (_with_rows(one, found[one.table]) if one.table in found else one for one in proof.tables)
    return proof.model_copy(update={"tables": tuple(tables)})


def _with_rows(proof: TableProof, found: ComparedWindows) -> TableProof:
    notes = tuple(note for note in proof.notes if note != NOT_COMPARED)
    proof = proof.model_copy(update={"notes": notes})
    if found.not_compared is not None:
        return proof.adding(notes=[f"the rows of closed windows were not compared: {found.not_compared}"])
    if found.missing or found.strange:
        such_as = f", such as {'; '.join(found.examples)}" if found.examples else ""
        problem = (
            f"{found.missing:,} rows of closed windows are missing or wrong, and {found.strange:,} rows are not those of any: "
            f"{found.span}, computed again from Kafka{such_as}"
        )
        return proof.adding(problems=[problem])
    notes = (f"{found.computed:,} rows of closed windows are as Kafka's records give them: {found.span}, without late records",)
    if found.after_ms is not None:
        notes += ("Kafka has deleted records of earlier windows, which were not compared",)
    if found.one_way:
        notes += (
            "rows that no window gives were not looked for: the transform's output has no column of functions.window that says "
            "which rows are of earlier windows",
        )
    return proof.adding(notes=notes)
