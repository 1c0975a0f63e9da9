"""A target that is no table: rows wait in files of the driver until a commit takes them, and the ledger sums up all commits."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

import pyarrow as pa

from lakebound.landing.staged_rows import StagedRows
from lakebound.landing.to_topics.ledger_record import TargetTotals
from lakebound.tables.layout import FileLayout
from lakebound.tables.target import LandingTarget


class OtherTarget(LandingTarget):
    """What topics, stores and the like have in common; what a method of ``LandingTarget`` means stands there."""

    _staged: StagedRows

    @property
    @abstractmethod
    def totals(self) -> TargetTotals | None:
        """What the commits up to the one last seen have counted; None before the first."""

    def schema(self) -> pa.Schema:
        """The columns of the files in which rows wait."""
        return self._staged.schema

    def layout(self) -> FileLayout:
        """Where these files go: a folder of the application's own."""
        return self._staged.layout

    def remove_staged(self) -> None:
        """Remove rows that wait for a commit: their batch is read again."""
        self._staged.remove()

    def has_moved_on(self) -> bool:
        """Whether somebody else has committed since: the next commit finds out by itself."""
        return False

    def scan_sources(self, topic_ids: Mapping[str, str]) -> pa.Table | None:
        """Return the origin of every row, as ``_kafka``; None where the target does not keep it.

        Args:
            topic_ids: Kafka's ids of the topics that are read, by their names.
        """
        return None

    def keep_cheap(self) -> None:
        """Do what keeps the next commits cheap: nothing, unless a kind needs something."""

    def close(self) -> None:
        """Disconnect."""
