"""The plan that a function made of a local relation, kept for two seconds: the rows of the next slices take their place in it.

To call a function of DataFrames costs more than to compute a few hundred rows by it: each of its expressions crosses py4j, and
each of its steps is analysed. So the function is called anew only when its last plan is old, and its plan is kept only where
two calls one after the other have made the same of the same rows. What it reads besides its rows may be older by these two
seconds, such as a table, or the day that Python says; reference data of the YAML is never. So a small table that the records
are joined with is read once in that time, and where its keys are unique, the join becomes a lookup (``table_lookup``).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakebound.redaction import redacted
from lakebound_spark.batch.spark_objects import items_of, spark_objects
from lakebound_spark.batch.table_lookup import lookup_in_place_of
from lakebound_spark.batch.transform import Transform

log = logging.getLogger(__name__)

_KEPT_SECONDS = 2.0
_LARGEST_TABLE_BYTES = 4 * 1024 * 1024
"""Of a table, as Spark estimates it: files, or rows."""
_MOST_TABLE_ROWS = 100_000
"""Files of few bytes may hold many rows. These stay in the JVM, which has 1 GiB where nobody asks for more."""
_NAMES_AND_HINTS = ("SubqueryAlias", "ResolvedHint")
_MOST_DIFFERENT = 3
"""Calls in a row that may make another plan before no more plans are compared: the function depends on something else."""


@dataclass(frozen=True)
class _Step:
    """A node of a plan above the rows, with its other children."""

    node: Any
    before: tuple[Any, ...]
    after: tuple[Any, ...]


@dataclass(frozen=True)
class KeptPlan:
    """An analysed plan.

    Attributes:
        relation: The local relation in it, whose rows are replaced.
        steps: The nodes above it, from the lowest to the root.
    """

    relation: Any
    steps: tuple[_Step, ...]

    def over(self, records: DataFrame) -> DataFrame:
        """Return what the function makes of other rows: a local relation of the same schema."""
        session = records.sparkSession
        spark = spark_objects(session._jvm)
        node = self.relation.copy(
            self.relation.output(), _analysed(records).data(), self.relation.isStreaming(), self.relation.stream()
        )
        for step in self.steps:
            node = step.node.withNewChildren(spark.to_seq([*step.before, node, *step.after]))
        node.setAnalyzed()  # Its parts are: the analysis is most of what is to be spared.
        return DataFrame(spark.datasets.ofRows(session._jsparkSession, node), session)

    def tables_now(self, session: SparkSession) -> list[Any]:
        """Return what stands beside the records: of small tables that they are joined with the rows of now, else the nodes."""
        return [
            self._read(session, node) if step.node.nodeName() == "Join" else node
            for step in self.steps
            for node in (*step.before, *step.after)
        ]

    def with_tables(self, session: SparkSession, tables: Sequence[Any]) -> KeptPlan:
        """Return the same with what ``tables_now`` has returned beside the records."""
        left, steps = iter(tables), list[_Step]()
        for step in self.steps:
            before, after = (tuple(next(left) for _ in nodes) for nodes in (step.before, step.after))
            steps += _joined(session, replace(step, before=before, after=after))
        return replace(self, steps=tuple(steps))

    def _read(self, session: SparkSession, node: Any) -> Any:
        spark = spark_objects(session._jvm)
        if node.nodeName() in _NAMES_AND_HINTS:
            return node.withNewChildren(spark.to_seq([self._read(session, node.children().apply(0))]))
        if node.nodeName() == "LocalRelation":
            return node
        execution = spark.datasets.ofRows(session._jsparkSession, node).queryExecution()
        if int(execution.optimizedPlan().stats().sizeInBytes()) > _LARGEST_TABLE_BYTES:
            return node
        rows = execution.executedPlan().executeTake(_MOST_TABLE_ROWS + 1)
        if len(rows) > _MOST_TABLE_ROWS:
            return node
        return self.relation.copy(node.output(), spark.array_to_seq(rows), False, self.relation.stream())


def kept(records: DataFrame, output: DataFrame) -> KeptPlan | None:
    """Return the function's plan to be used for other rows; None where these rows cannot be replaced in it.

    Args:
        records: What the function got: a local relation.
        output: What it returned.
    """
    relation, plan = _analysed(records), _analysed(output)
    # A subquery may read the records as well, and so may the other side of a join.
    if relation.nodeName() != "LocalRelation" or not plan.deterministic() or plan.subqueriesAll().size():
        return None
    rows = _identity(records, relation.data())
    found = list(_paths(records, plan, rows, ()))
    if len(found) != 1:
        return None
    [(of_plan, steps)] = found
    # A copy of the root would share the set to which Spark adds the id of each DataFrame that is made of it.
    plan.unsetTagValue(spark_objects(records.sparkSession._jvm).datasets.DATASET_ID_TAG())
    return KeptPlan(of_plan, steps)


class PlanKeeper:
    """Calls one function, or uses the plan that it made last. Used by one thread at a time."""

    def __init__(
        self,
        function: Transform,
        versions: Callable[[], Mapping[str, str]],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Call nothing yet.

        Args:
            function: The pipeline's.
            versions: The versions of the reference data that it reads at present, by name.
            monotonic: Seconds.
        """
        self._function = function
        self._versions = versions
        self._monotonic = monotonic
        self._of: tuple[str, Mapping[str, str]] | None = None
        self._kept: KeptPlan | None = None
        self._with_tables: KeptPlan | None = None
        self._tables: Sequence[Any] | None = None
        self._is_read = False
        self._is_sure = False
        self._until = 0.0
        self._different = 0

    def __call__(self, records: DataFrame) -> DataFrame:
        """Return what the function makes of the records, which are a local relation."""
        if self._different >= _MOST_DIFFERENT:
            return self._function(records)
        session: Any = records.sparkSession._jsparkSession
        of = (str(session.sessionUUID()), dict(self._versions()))
        if of != self._of:
            self._of, self._kept, self._is_sure, self._with_tables = of, None, False, None
        if self._kept is not None and self._is_sure and self._monotonic() < self._until:
            ready = self._kept if _is_left_to_jobs(records.sparkSession) else self._ready(self._kept, records.sparkSession)
            return ready.over(records)
        output, self._is_read = self._function(records), False
        try:
            self._compare(records, output)
        except Exception as exc:
            log.info("the function is called for each slice, as its plan cannot be kept: %s", redacted(exc))
            self._kept, self._different = None, _MOST_DIFFERENT
        return output

    def _ready(self, kept: KeptPlan, session: SparkSession) -> KeptPlan:
        """Return the plan with the tables in it, read at its first use; without them where they cannot be read."""
        if not self._is_read or self._with_tables is None:
            self._is_read = True
            try:
                tables = kept.tables_now(session)
                # To make a lookup takes longer than to read the table. The plan before makes the same of the same rows.
                if self._with_tables is None or self._tables is None or not _are_same(tables, self._tables):
                    self._with_tables, self._tables = kept.with_tables(session, tables), tables
            except Exception as exc:
                log.info("a table that the function reads is read for each slice: %s", redacted(exc))
                self._with_tables, self._tables = kept, None
        return self._with_tables

    def _compare(self, records: DataFrame, output: DataFrame) -> None:
        """Keep the new plan; be sure of it where the one before makes the same of these rows."""
        before, self._kept = self._kept, kept(records, output)
        if self._kept is None:
            self._different = _MOST_DIFFERENT
            return
        if before is not None:
            self._is_sure = _make_the_same(before.over(records), output)
            if not self._is_sure:
                self._with_tables = None
            self._different = 0 if self._is_sure else self._different + 1
        self._until = self._monotonic() + _KEPT_SECONDS


def _joined(session: SparkSession, step: _Step) -> list[_Step]:
    """Return a step; a lookup in its place where it is a join that one can stand for."""
    rows = _local_relation([*step.before, *step.after][0]) if step.node.nodeName() == "Join" else None
    try:
        nodes = None if rows is None else lookup_in_place_of(session, step.node, len(step.before), rows)
    except Exception as exc:
        log.info("a join stays a join, as no lookup can be made of it: %s", redacted(exc))
        nodes = None
    return [step] if nodes is None else [_Step(node, (), ()) for node in nodes]


def _is_left_to_jobs(session: SparkSession) -> bool:
    """Whether Spark is not to evaluate local relations while it plans: then a lookup would raise where a join does not."""
    return "ConvertToLocalRelation" in str(session.conf.get("spark.sql.optimizer.excludedRules", ""))


def _make_the_same(one: DataFrame, other: DataFrame) -> bool:
    """Whether two plans give the same of the same rows; Spark's canonical form has no names of columns."""
    plan, another = _analysed(one), _analysed(other)
    return bool(plan.canonicalized().equals(another.canonicalized()) and plan.schema().equals(another.schema()))


def _are_same(tables: Sequence[Any], before: Sequence[Any]) -> bool:
    """Whether all have the rows that they had; False where those of one are not known."""
    pairs = [(_local_relation(one), _local_relation(other)) for one, other in zip(tables, before, strict=True)]
    return all(a is not None and b is not None and a.data().equals(b.data()) for a, b in pairs)


def _local_relation(node: Any) -> Any | None:
    """Return the rows that a node stands for; None where they are not known before."""
    while node.nodeName() in _NAMES_AND_HINTS:
        node = node.children().apply(0)
    return node if node.nodeName() == "LocalRelation" else None


def _analysed(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().analyzed()


def _identity(records: DataFrame, of: Any) -> int:
    return spark_objects(records.sparkSession._jvm).identity_of(of)


def _paths(records: DataFrame, node: Any, rows: int, above: tuple[_Step, ...]) -> list[tuple[Any, tuple[_Step, ...]]]:
    """Return each relation with these rows below a node, with the steps from it to the root."""
    if node.nodeName() == "LocalRelation":
        return [(node, above)] if _identity(records, node.data()) == rows else []
    children = items_of(node.children())
    return [
        found
        for index, child in enumerate(children)
        for found in _paths(records, child, rows, (_Step(node, tuple(children[:index]), tuple(children[index + 1 :])), *above))
    ]
