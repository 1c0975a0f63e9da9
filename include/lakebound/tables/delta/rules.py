"""What a Delta table can be. Pure; imports no library of Delta."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pyarrow as pa

from lakebound.tables.delta.log import with_kafka_statistics
from lakebound.tables.format_rules import FormatRules

_REFUSED_CHARACTERS = frozenset(" ,;{}()\n\t=")
_CHANGEABLE = (
    "delta.autoOptimize",
    "delta.checkpointInterval",
    "delta.dataSkipping",
    "delta.deletedFileRetentionDuration",
    "delta.enableExpiredLogCleanup",
    "delta.logRetentionDuration",
    "delta.randomizeFilePrefixes",
    "delta.setTransactionRetentionDuration",
    "delta.targetFileSize",
    "delta.tuneFileSizesForRewrites",
)
"""Starts of the names of properties that change no protocol, so that they may change on an existing table."""


class DeltaRules(FormatRules):
    """The rules of Delta."""

    fixed_properties: ClassVar[Mapping[str, str]] = {"delta.columnMapping.mode": "none"}
    tells_partitions_in_log: ClassVar[bool] = True
    not_widened: ClassVar[str] = "a Delta table cannot be widened here (that needs its feature typeWidening)"
    skips_changes: ClassVar[str] = "skipChangeCommits"
    # The share of a log checkpoint each 50 commits is in it.
    commit_requests: ClassVar[tuple[float, float]] = (2.1, 4.4)

    def unusable_name(self, name: str) -> str | None:
        """Return why a column cannot have a name."""
        if not set(name) & _REFUSED_CHARACTERS:
            return None
        return "has a character that Delta's readers refuse (one of ' ,;{}()=' or a line break): give it another name"

    def is_changeable(self, name: str) -> bool:
        """Whether a property of an existing table may change; one that Delta does not know may."""
        return not name.startswith("delta.") or name.startswith(_CHANGEABLE)

    def wanted_properties(self, schema: pa.Schema, wanted: Mapping[str, str]) -> dict[str, str]:
        """Return the properties as the table gets them: statistics of ``_kafka`` are always kept."""
        kept = with_kafka_statistics(schema, wanted)
        return {name: kept[name] for name in wanted}


RULES = DeltaRules()
