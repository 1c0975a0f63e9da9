"""The topics and stores of a pipeline: what they ask of its rows, and the targets that they are for an application."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from lakebound.landing.run_spec import RunSpec
from lakebound.landing.to_stores import store_rows
from lakebound.landing.to_topics.messages import staged_schema
from lakebound.tables.target import LandingTarget
from lakebound_spark.batch.landable import Bound
from lakebound_spark.batch.message_bounds import MessageBound, topic_bounds
from lakebound_spark.batch.store_bounds import store_bounds
from lakebound_spark.batch.targets import Writer
from lakebound_spark.landing.parts import SessionParts
from lakebound_spark.stream.stores import check_stores, left_out_by_stores, make_store_targets
from lakebound_spark.stream.topics import check_target_topics, left_out_by_targets, make_topic_targets


@dataclass(frozen=True)
class OtherTargets:
    """Those of one application; none is opened yet.

    Attributes:
        run: The application's orders.
        planned: The rows that they get.
    """

    run: RunSpec
    planned: SessionParts

    @cached_property
    def staged(self) -> dict[str, pa.Schema]:
        """Columns of the files in which rows wait, by the target's id."""
        of_topics = {one.id: staged_schema(one, self.planned.arrow_rows) for one in self.run.spec.to_topics}
        return of_topics | self._of_stores

    @cached_property
    def _of_stores(self) -> dict[str, pa.Schema]:
        columns = self.planned.arrow_columns
        return {one.id: store_rows.staged_schema(one, columns) for one in self.run.spec.to_stores}

    def check(self, topic_ids: Mapping[str, str]) -> None:
        """Check, before anything is made, that the pipeline can land in them.

        Args:
            topic_ids: Kafka's ids of the topics that are read, by their names.

        Raises:
            LakeboundError: What ``check_target_topics`` and ``check_stores`` refuse.
        """
        check_target_topics(self.run, self.planned.arrow_rows, topic_ids)
        check_stores(self.run, self.planned.process.master, self._of_stores)

    def make(self, writer: Writer, messages: list[MessageBound]) -> list[LandingTarget]:
        """Return the targets.

        Args:
            writer: This application.
            messages: Which messages the topics take (``lakebound_spark.stream.topics.message_bounds``).
        """
        topics = make_topic_targets(self.run, writer, messages, self.staged)
        return [*topics, *make_store_targets(self.run, writer, self._of_stores)]

    def bounds(self, messages: Sequence[MessageBound]) -> list[Bound]:
        """Return what they ask of the rows; of messages as ``make`` is told."""
        columns = self.planned.arrow_columns
        of_stores = [bound for one in self.run.spec.to_stores for bound in store_bounds(one, columns)]
        return [*topic_bounds(messages), *of_stores]

    def left_out(self, by_tables: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
        """Return the columns that each target does not get, by its id.

        Args:
            by_tables: What tables do not get because of ``schema_evolution``.
        """
        rows = self.planned.arrow_rows
        return left_out_by_targets(self.run, rows, by_tables) | left_out_by_stores(self._of_stores, rows)
