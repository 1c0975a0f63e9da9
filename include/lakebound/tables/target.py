"""What can be landed in, as far as a commit needs it: a table, or a topic (``lakebound.landing.to_topics``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from lakebound.ledger.entry import Entry
from lakebound.tables.layout import FileLayout
from lakebound.tables.table import CommittedEntry, DataFile, LedgerView


class TargetSpec(Protocol):
    """What a pipeline says of a target."""

    @property
    def id(self) -> str:
        """``format:name``."""

    @property
    def format(self) -> str:
        """``delta``, ``iceberg`` or ``topic``."""


class LandingTarget(Protocol):
    """The part of ``Table`` that landing uses; what it means stands there."""

    @property
    def spec(self) -> TargetSpec:
        """What the pipeline says of it."""

    def exists(self) -> bool:
        """Whether there is such a target."""

    def create(self, schema: pa.Schema, genesis: Entry) -> None:
        """Make it, with its ``genesis`` entry."""

    def schema(self) -> pa.Schema:
        """The columns of its data files, ``_kafka`` included."""

    def read_ledger(self, *, to_reset: bool = False) -> LedgerView:
        """Refresh the handle and return the entry that counts."""

    def commit(self, files: Sequence[DataFile], entry: Entry) -> str:
        """Commit files with the entry, on the handle of the last ``read_ledger`` or ``commit``; return the version."""

    def has_moved_on(self) -> bool:
        """Whether somebody else has committed since."""

    def entries(self) -> Iterator[CommittedEntry]:
        """Yield entries newest first, as far back as they are kept."""

    def layout(self) -> FileLayout:
        """Where data files go."""

    def keep_cheap(self) -> None:
        """Do what keeps the next commits cheap."""
