"""What Spark has seen of rows while an action ran, and that it has seen nothing.

``Observation.get`` fails where Spark's optimizer has left the observed rows out of the plan: a filter that is always false, a
test for null of a column that is never null, a join with a table that is empty just now. And it waits for ever where the
action's own plan names the rows as a view (``ObservationManager.tryComplete`` in Spark 4.1.3 walks over the plan as it was
written). And it tells too little where the action takes only some of the rows: adaptive execution gives up reading the
records as soon as it finds the other side of a join to be empty. So what it does not tell, and what it tells of fewer rows
than there can be, is counted by a job of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import Column, DataFrame, Observation

log = logging.getLogger(__name__)

_SOON = "100 milliseconds"
"""Spark tells the values a few milliseconds after the action."""
_LATEST_MILLISECONDS = 10_000
"""For Spark's listeners to hear of everything that has ended; then what is not told will not be."""


@dataclass(frozen=True)
class Watched:
    """Rows of which some values are observed by whatever action takes them."""

    rows: DataFrame
    _unwatched: DataFrame
    _columns: Sequence[Column]
    _observation: Observation

    def seen(self, is_whole: Callable[[Mapping[str, Any]], bool] = lambda _: True) -> dict[str, Any]:
        """Return the values, once the action has ended; by a job of their own where it has not computed them of all rows.

        Args:
            is_whole: Whether values are of all rows, as far as it can be told from them.
        """
        if _is_told(self._observation, self._unwatched) and is_whole(told := self._observation.get):
            return told
        log.info("Spark has not taken all observed rows; they are counted by a job of their own")
        return self._unwatched.agg(*self._columns).collect()[0].asDict(recursive=False)


def watch(rows: DataFrame, name: str, *columns: Column) -> Watched:
    """Return rows that are observed.

    Args:
        rows: What to observe.
        name: Unique per action.
        columns: Aggregates.
    """
    observation = Observation(name)
    return Watched(rows.observe(observation, *columns), rows, columns, observation)


def _is_told(observation: Observation, rows: DataFrame) -> bool:
    """Return whether there are values; of rows that Spark has left out, it tells a row without a schema."""
    jvm: Any = rows.sparkSession._jvm
    told: Any = observation._jo.future()  # type: ignore[union-attr]
    try:
        jvm.scala.concurrent.Await.ready(told, jvm.scala.concurrent.duration.Duration.create(_SOON))
    except Py4JJavaError:
        try:
            rows.sparkSession.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(_LATEST_MILLISECONDS)
        except Py4JJavaError:
            log.warning("Spark's listeners are %d s behind", _LATEST_MILLISECONDS // 1000)
    return bool(told.isCompleted()) and observation._jo.getRow().schema() is not None  # type: ignore[union-attr]
