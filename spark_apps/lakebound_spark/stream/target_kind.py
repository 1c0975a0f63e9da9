"""What an application needs of a kind of target beside tables: what its targets ask of the rows, and the targets themselves.

A kind is one module in the folder ``targets``, with the name of its module in ``lakebound.landing.targets``; its constant
``TARGETS`` is a class of the kind ``ApplicationTargets``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql import DataFrame

from lakebound.control.private_files import make_private_folder
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.other_target import OtherTarget
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.target_kind import target_kinds
from lakebound_spark.batch.landable import Bound
from lakebound_spark.batch.targets import Writer
from lakebound_spark.landing.parts import SessionParts
from lakebound_spark.stream import targets


class ApplicationTargets(ABC):
    """The targets of one kind of one application; none is opened before ``make``."""

    key: ClassVar[str]
    """Of the YAML, such as ``to_topics``."""
    takes_json: ClassVar[bool] = False
    """Whether each row gets its JSON for them."""

    def __init__(self, run: RunSpec, planned: SessionParts, kafka: KafkaFacts) -> None:
        """Ask nothing yet.

        Args:
            run: The application's orders.
            planned: The rows that they get.
            kafka: Asks Kafka.
        """
        self.run, self.planned, self.kafka = run, planned, kafka

    @property
    def specs(self) -> Sequence[Any]:
        """What the pipeline says of them."""
        return self.run.spec.targets_by_key[self.key]

    @cached_property
    def staged(self) -> dict[str, pa.Schema]:
        """Columns of the files in which rows wait, by the target's id.

        Raises:
            TableMismatchError: The rows have no such column, or it is of another type.
        """
        return {one.id: self.staged_schema(one) for one in self.specs}

    @abstractmethod
    def staged_schema(self, one: Any) -> pa.Schema:
        """Return these columns of one target."""

    @abstractmethod
    def check(self, topic_ids: Mapping[str, str]) -> None:
        """Check, before anything is made, that the pipeline can land in them.

        Args:
            topic_ids: Kafka's ids of the topics that are read, by their names.
        """

    @abstractmethod
    def make(self, writer: Writer, folder: Path) -> list[OtherTarget]:
        """Return the targets of this application; called only where there is one.

        Args:
            writer: This application.
            folder: For the files in which rows wait.
        """

    def bounds(self) -> list[Bound]:
        """Return what they ask of the rows."""
        return []

    def made(self, writer: Writer) -> list[OtherTarget]:
        """Return the targets, with a folder of their own.

        Args:
            writer: This application.
        """
        if not self.specs:
            return []
        folder = self.run.control.checkpoint(self.run.app_id) / self.key.removeprefix("to_")
        make_private_folder(folder)
        return self.make(writer, folder)

    @classmethod
    @abstractmethod
    def plan_problems(cls, run: RunSpec, one: Any, output: DataFrame) -> Iterator[tuple[str, str | None]]:
        """Yield what keeps a pipeline from landing in a target, and the key at fault, if it is one.

        Args:
            run: The orders.
            one: What the pipeline says of the target.
            output: An empty DataFrame with the columns of the rows, without their JSON.
        """


@cache
def application_targets() -> tuple[type[ApplicationTargets], ...]:
    """Return every kind, in the order of ``target_kinds``."""
    return tuple(import_module(f"{targets.__name__}.{kind.module}").TARGETS for kind in target_kinds())
