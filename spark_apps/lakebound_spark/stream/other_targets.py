"""What a pipeline lands in beside its tables: what these ask of its rows, and the targets that they are for an application."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from lakebound.errors import TableMismatchError
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.spark_command import is_local
from lakebound.landing.to_topics.messages import JSON_COLUMN
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.target import LandingTarget
from lakebound_spark.batch.landable import Bound
from lakebound_spark.batch.targets import Writer
from lakebound_spark.landing.parts import SessionParts
from lakebound_spark.stream.target_kind import application_targets


class OtherTargets:
    """Those of one application; none is opened yet."""

    def __init__(self, run: RunSpec, planned: SessionParts, kafka: KafkaFacts) -> None:
        """Ask nothing yet.

        Args:
            run: The application's orders.
            planned: The rows that they get.
            kafka: Asks Kafka.
        """
        self._run, self._planned = run, planned
        self._kinds = [kind(run, planned, kafka) for kind in application_targets()]

    @property
    def staged(self) -> dict[str, pa.Schema]:
        """Columns of the files in which rows wait, by the target's id."""
        return {target: schema for kind in self._kinds for target, schema in kind.staged.items()}

    def check(self, topic_ids: Mapping[str, str]) -> None:
        """Check, before anything is made, that the pipeline can land in them.

        Args:
            topic_ids: Kafka's ids of the topics that are read, by their names.

        Raises:
            LakeboundError: What a kind refuses.
        """
        for kind in self._kinds:
            kind.check(topic_ids)

    def make(self, writer: Writer) -> list[LandingTarget]:
        """Return the targets.

        Args:
            writer: This application.
        """
        return [target for kind in self._kinds for target in kind.made(writer)]

    def bounds(self) -> list[Bound]:
        """Return what they ask of the rows."""
        return [bound for kind in self._kinds if kind.specs for bound in kind.bounds()]

    def left_out(self, by_tables: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
        """Return the columns that each target does not get, by its id: tables no JSON, others what does not wait for them.

        Args:
            by_tables: What tables do not get because of ``schema_evolution``.
        """
        rows = frozenset(self._planned.arrow_rows.names)
        found = {target: rows - {*schema.names} for target, schema in self.staged.items()}
        if JSON_COLUMN not in rows:
            return {**by_tables, **found}
        return {**{one.id: by_tables.get(one.id, frozenset()) | {JSON_COLUMN} for one in self._run.spec.tables}, **found}


def take_json(spec: PipelineSpec) -> bool:
    """Return whether each row of a pipeline gets its JSON, for one of its targets."""
    return any(kind.takes_json and spec.targets_by_key[kind.key] for kind in application_targets())


def check_machine(run: RunSpec, master: str) -> None:
    """Check that rows which wait for a commit are where the driver is.

    Args:
        run: The orders.
        master: Of Spark.

    Raises:
        TableMismatchError: They would be written on other machines.
    """
    for one in run.spec.other_targets:
        if not is_local(master):
            reason = f"its rows wait on the driver's machine, and Spark runs on {master}; run the pipeline by the backend local"
            raise TableMismatchError(one.id, reason)
