"""What the application that releases quarantined records is told, and what it says of itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from pydantic import Field

from lakebound.control.replay_result import PieceCounts, ReplayResult
from lakebound.formats.reasons import DECODER_REASONS
from lakebound.frozen import FrozenRecord
from lakebound.landing.run_spec import RunSpec

APPLICATION = "release.py"


class ReleaseOrders(RunSpec):
    """One release's orders: those of an application, which reasons are tried, and whether anything is committed."""

    reasons: tuple[str, ...] = DECODER_REASONS
    is_trial: bool = False


class Verdicts(FrozenRecord):
    """Of records with one reason: how many fit today, and how many do not."""

    fit: int = 0
    stay: int = 0


class ReleaseResult(ReplayResult):
    """How far a release has got; a trial lands nothing. It lies among those of replays: maintenance leaves its files."""

    is_trial: bool = False
    verdicts: dict[str, Verdicts] = Field(default_factory=dict)
    left_out: dict[str, str] = Field(default_factory=dict)

    def plus(self, piece: PieceCounts) -> Self:
        """Return the record after one more piece."""
        verdicts, left_out = self.verdicts | dict(self._with_verdicts(piece)), {**self.left_out, **piece.left_out}
        return super().plus(piece).model_copy(update={"verdicts": verdicts, "left_out": left_out})

    def _with_verdicts(self, piece: PieceCounts) -> Iterator[tuple[str, Verdicts]]:
        for reason, found in piece.verdicts.items():
            before = self.verdicts.get(reason, Verdicts())
            yield reason, Verdicts(fit=before.fit + found["fit"], stay=before.stay + found["stay"])
