"""The session's settings while a person's function is called: they decide what every record means, so they are Lakebound's.

A function that sets the time zone shifts what Spark reads of the next batches, and not what the driver reads. So the settings
are compared around each call. What has changed is put back, and a change of what decides rows is refused by name.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import RLock
from typing import Any

from pyspark.sql import SparkSession

from lakebound.errors import TransformSettingsError
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch.spark_objects import spark_objects

log = logging.getLogger(__name__)

SETTINGS_LOCK = RLock()
"""Held while a person's function runs, and while Lakebound changes a setting: else the one looks like the other."""
LARGEST_RELATION = "spark.sql.execution.arrow.localRelationThreshold"
"""It is not compared: Lakebound changes it also while another thread calls the function. It decides no rows."""

_HARMLESS = (
    "spark.sql.adaptive.",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.broadcastTimeout",
    "spark.sql.cbo.",
    "spark.sql.codegen.",
    "spark.sql.debug.",
    "spark.sql.execution.arrow.maxRecordsPerBatch",
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.files.minPartitionNum",
    "spark.sql.files.openCostInBytes",
    "spark.sql.inMemoryColumnarStorage.",
    "spark.sql.join.preferSortMergeJoin",
    "spark.sql.maxPlanStringLength",
    "spark.sql.repl.",
    "spark.sql.shuffle.partitions",
    "spark.sql.sources.parallelPartitionDiscovery.",
    "spark.sql.ui.",
)
"""How these names begin: they say how Spark computes rows, and not which. A change is put back, and not refused."""
_SHOWN = "spark.sql."
"""How names begin whose values may stand in a message: others may be secrets."""
_MOST_KEPT = 16

_kept = dict[int, Any]()
"""Copies of settings in the JVM, by their hash."""


def is_harmless(name: str) -> bool:
    """Return whether a function may set this: rows are the same with any value, or the name is none of Spark's."""
    return name.startswith(_HARMLESS) or not name.startswith("spark.")


@contextmanager
def own_settings(spec: PipelineSpec, when: str, *sessions: SparkSession | None) -> Iterator[None]:
    """Put back what the block sets in a session, and refuse what decides rows.

    Args:
        spec: The pipeline whose function, or module, the block calls.
        when: What the block does, for the message.
        sessions: In which the function can set something, besides the first one of the process.

    Raises:
        TransformSettingsError: It has set what decides rows.
    """
    with SETTINGS_LOCK:
        before = _settings_of(*sessions)
        failure: BaseException | None = None
        try:
            yield
        except BaseException as exc:
            failure = exc
            raise
        finally:
            changed: dict[str, tuple[str | None, str | None]] = {}
            for settings, copy in before:
                if not settings.equals(copy):
                    changed |= _put_back(settings, copy)
            refused = {name: values for name, values in changed.items() if not is_harmless(name)}
            if refused:
                told = [_told(name, *values) for name, values in sorted(refused.items())]
                raise TransformSettingsError(spec.pipeline, spec.transform or "", when, told) from failure
            if changed:
                log.info("settings that %s of %s has set were put back: %s", when, spec.transform, ", ".join(sorted(changed)))


def _settings_of(*sessions: SparkSession | None) -> list[tuple[Any, Any]]:
    """Return the settings of each session as the JVM has them, and a copy of them; none where no Spark runs."""
    first = getattr(SparkSession, "_instantiatedSession", None)
    distinct = {id(one): one for one in (*sessions, first) if isinstance(one, SparkSession) and one._sc._jsc is not None}
    found = ((one._jvm, one._jsparkSession.sessionState().conf().settings()) for one in distinct.values())
    return [(settings, _copy_of(jvm, settings)) for jvm, settings in found]


def _copy_of(jvm: Any, settings: Any) -> Any:
    """Return a copy, which is made once of the same settings."""
    key = int(settings.hashCode())
    copy = _kept.get(key)
    if copy is None:
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        copy = _kept[key] = spark_objects(jvm).new_map(settings)
    return copy


def _put_back(settings: Any, copy: Any) -> dict[str, tuple[str | None, str | None]]:
    """Make the settings what they were, and return what had changed: the value before, and after."""
    now, was = dict(_items(settings)), dict(_items(copy))
    names = {name for name in {*now, *was} if now.get(name) != was.get(name)} - {LARGEST_RELATION}
    for name in names:
        if name in was:
            settings.put(name, was[name])
        else:
            settings.remove(name)
    return {name: (was.get(name), now.get(name)) for name in names}


def _items(settings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in list(settings):
        value = settings[name]
        if value is not None:
            yield str(name), str(value)


def _told(name: str, before: str | None, after: str | None) -> str:
    if not name.startswith(_SHOWN):
        return name
    return f"{name} ({'not set' if before is None else before!r}, now {'not set' if after is None else after!r})"
