"""The ``state`` block of a pipeline whose transform makes windows: event time, watermark, and what it cannot be together with.

Pure.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pydantic import Field, field_validator

from lakebound.errors import WithStateError
from lakebound.frozen import Frozen
from lakebound.spec.real_time import REAL_TIME
from lakebound.spec.yaml_source import Keys

if TYPE_CHECKING:
    from lakebound.spec.pipeline import PipelineSpec

_TIME = re.compile(r"([0-9]{1,9}) ?(ms|s|m|h|d)")
_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_INSTEAD = {
    "replay": "to compute windows anew, land the topic into new tables with another pipeline and compare",
    "redo": "a changed transform makes other windows: land the topic into new tables with another pipeline and compare",
    "release from quarantine": "late records are in quarantine with their values: correct the windows from there by hand, or "
    "land the topic into new tables with a longer watermark",
    "rewind": "open windows are of now: land the topic into new tables with another pipeline",
    "erasure": "delete the keys with a tool of the table format while the pipeline is held",
    "trial": "run lakebound check, and start the pipeline with tables of its own",
    "run on a cluster": "executors would need a folder in common for the open windows; set LAKEBOUND_SPARK_MASTER=local[2]",
    "bounded run": "start it without --until-time and --offsets; freshness available_now ends where Kafka ends now",
    "run in real time": "start it without --freshness real_time: a row is final when its window is closed",
    "rebase": "the rows of windows do not say which offsets they are of: land the topic into new tables with another pipeline",
    "accept_loss": "windows that are open held the records: land the topic into new tables with another pipeline",
    "new_incarnation": "windows that are open are of the topic before: land the topic into new tables with another pipeline",
}
_MOST_AHEAD = "1h"
_COLUMN = re.compile(r"[A-Za-z_]\w*")


class StateSpec(Frozen):
    """The transform makes one windowed aggregation: a row is landed once, when its window is closed."""

    event_time: str = Field(
        description="Input column of type TIMESTAMP by which records belong to windows. The transform passes it to "
        "functions.window as it is."
    )
    watermark: str = Field(
        description="How long a window waits for late records, such as 30s, 10m or 2h: it is closed when a record has come "
        "whose event time is this much after the window's end. A record that comes later goes to quarantine with the reason "
        "late."
    )
    max_ahead: str | None = Field(
        default=None,
        description="How far the event time of a record may be ahead of Kafka's time of it, and of the machine's clock (by a "
        "minute more, and up to as much again). A record that is further ahead goes to quarantine with the reason far_ahead, "
        "because it would close every window before its time. Default: half of watermark, at most 1h.",
    )

    @field_validator("event_time")
    @classmethod
    def _event_time(cls, event_time: str) -> str:
        if not _COLUMN.fullmatch(event_time):
            raise ValueError(f"{event_time!r} is not the name of a top-level column")
        return event_time

    @field_validator("watermark", "max_ahead")
    @classmethod
    def _time(cls, text: str | None) -> str | None:
        if text is not None and not _TIME.fullmatch(text):
            raise ValueError(f"{text!r} is not a time such as 30s, 10m or 2h")
        return text

    @property
    def watermark_ms(self) -> int:
        """The watermark's delay in milliseconds."""
        return _milliseconds(self.watermark)

    @property
    def max_ahead_ms(self) -> int:
        """How far ahead an event time may be, in milliseconds."""
        if self.max_ahead is None:
            return min(_milliseconds(_MOST_AHEAD), self.watermark_ms // 2)
        return _milliseconds(self.max_ahead)

    @property
    def max_ahead_text(self) -> str:
        """How far ahead an event time may be, for messages."""
        return self.max_ahead or f"{self.max_ahead_ms / 1000:g} s"


def check_stateless(spec: PipelineSpec, action: str) -> None:
    """Refuse an action that goes by the offsets of rows, with what to do instead.

    Args:
        spec: The pipeline.
        action: A name of ``_INSTEAD``.

    Raises:
        WithStateError: The pipeline has a state.
    """
    if spec.state is not None:
        raise WithStateError(spec.pipeline, action, _INSTEAD[action])


def cluster_problem(spec: PipelineSpec, *, local: bool) -> str | None:
    """Return why a pipeline cannot run where Spark's master is; None where it can.

    Args:
        spec: The pipeline.
        local: Whether Spark runs in one process.
    """
    if local or spec.state is None:
        return None
    return f"state: such a pipeline has no run on a cluster; {_INSTEAD['run on a cluster']}"


def compacted_source_problem(topic: str) -> str:
    """Return what is wrong with a pipeline with state whose topic Kafka compacts.

    Args:
        topic: The pipeline's.
    """
    return (
        f"topic {topic} is compacted (cleanup.policy): Kafka deletes records that belong to open windows, so a start "
        f"would rebuild these windows wrongly; set cleanup.policy=delete, or send the records to a topic of their own"
    )


def _milliseconds(text: str) -> int:
    match = _TIME.fullmatch(text)
    assert match is not None
    return int(match[1]) * _MILLISECONDS[match[2]]


def state_problem(spec: PipelineSpec) -> tuple[Keys, str] | None:
    """Return what a pipeline with ``state`` cannot be together with, and of which field that is; None where nothing is wrong.

    Args:
        spec: It has a ``state``.
    """
    registered = [part for part, one in spec.schema_sources.items() if one.registry is not None]
    return next(
        (
            ((key,), problem)
            for key, is_wrong, problem in (
                ("state", spec.transform is None, "only a transform makes windows, and the pipeline has no transform"),
                (
                    "topics",
                    len(spec.topics) > 1,
                    "windows of several topics are not supported yet; use a pipeline with state for each topic",
                ),
                (
                    "freshness",
                    spec.freshness == REAL_TIME,
                    "real_time cannot be used with state: a row is final when its window is closed; use 1s",
                ),
                (
                    "to_topics",
                    bool(spec.to_topics),
                    "rows of windows cannot be sent to topics yet; land them in tables",
                ),
                (
                    "to_stores",
                    bool(spec.to_stores),
                    "rows of windows cannot be put into stores yet; land them in tables",
                ),
                ("state", not spec.tables, "rows of windows land in tables, and the pipeline has none; add tables"),
                (
                    "reference",
                    bool(spec.reference),
                    "reference data cannot be used with state: a rebuild of open windows would read a newer version; join it "
                    "with the tables of closed windows",
                ),
                (
                    "complete_hours",
                    spec.complete_hours is not None,
                    "cannot be used with state: offsets do not say which windows are closed; compare window.end with the "
                    "watermark in lakebound status",
                ),
                (
                    next(iter(registered), "value"),
                    bool(registered),
                    "a schema of a registry cannot be used with state yet: open windows would be rebuilt with another "
                    "schema; write the schema into the YAML",
                ),
                (
                    "null_values",
                    spec.null_values in ("row", "delete"),
                    "row and delete cannot be used with state: a tombstone has no event time; use quarantine or skip",
                ),
            )
            if is_wrong
        ),
        None,
    )
