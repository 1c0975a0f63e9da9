"""The last word of a proof and of a validation, as small files that the objectives are judged by."""

from __future__ import annotations

import contextlib

from lakebound.control.folder import ControlFolder, read_json, write_json
from lakebound.frozen import FrozenRecord


class ProofSummary(FrozenRecord):
    """What the last proof of the whole pipeline said; ``at`` is epoch seconds.

    ``is_empty``: nothing had landed, so that nothing was proved.
    """

    ok: bool
    sentence: str
    missing: int = 0
    duplicated: int = 0
    is_empty: bool = False
    at: float


class ValidationSummary(FrozenRecord):
    """How many rows the last validation looked at, and how many of them were right; ``at`` is epoch seconds.

    A row counts once for each expectation about rows that was asked of it.
    """

    evaluated: int
    passed: int
    at: float

    @property
    def pass_rate(self) -> float | None:
        """The part that was right; None where nothing was looked at."""
        return self.passed / self.evaluated if self.evaluated > 0 else None


def write_proof(control: ControlFolder, summary: ProofSummary) -> None:
    """Write down what a proof of the whole pipeline said; a folder that cannot be written keeps nobody from the answer."""
    with contextlib.suppress(OSError):
        write_json(control.proof, summary.model_dump(mode="json"))


def read_proof(control: ControlFolder) -> ProofSummary | None:
    """Return it; None when nothing was proved, or the file cannot be read."""
    try:
        body = read_json(control.proof)
        return None if body is None else ProofSummary.model_validate(body)
    except (OSError, ValueError):
        return None


def read_validation(control: ControlFolder) -> ValidationSummary | None:
    """Return what the last validation said; None when there was none, or the file cannot be read."""
    try:
        body = read_json(control.folder / "validation" / "summary.json")
        return None if body is None else ValidationSummary.model_validate(body)
    except (OSError, ValueError):
        return None
