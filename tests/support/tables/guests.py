"""Guests of a stream, which commit to its tables, in tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pytest

from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables import guest
from tests.support.tables.local_tables import TOPIC_ID


class FakeKafka:
    """Stands for what asks a broker."""

    def __init__(self, _: object) -> None:
        """Needs no broker."""

    def topic_ids(self, topics: Sequence[str]) -> Mapping[str, str]:
        """Return the id of each topic."""
        return dict.fromkeys(topics, TOPIC_ID)


@dataclass(frozen=True)
class FakePlan:
    """What a transform gives that nobody calls."""

    spec: PipelineSpec
    columns: pa.Schema

    def table_schemas(self) -> dict[str, pa.Schema]:
        """Return the columns of each table."""
        return {one.id: self.columns for one in self.spec.tables}


class FakeSession:
    """Stands for Spark's."""

    def stop(self) -> None:
        """There is none."""


def without_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have guests try again at once.

    ``time.sleep`` itself stays: Py4J's thread would try as fast as it can, and so take half of the processor.
    """
    monkeypatch.setattr(guest, "_SHORTEST_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(guest, "_LONGEST_WAIT_SECONDS", 0.0)
