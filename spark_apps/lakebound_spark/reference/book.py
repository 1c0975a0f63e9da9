"""The reference data that transforms of an application read: one version of each, from one batch to the next."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.places import Places
from lakebound_spark.batch.local_relation import LocalRelations
from lakebound_spark.reference.loaded import Loaded
from lakebound_spark.reference.sources import Source, make_source


@dataclass(frozen=True)
class Reference:
    """A version of reference data that is ready for batches.

    Attributes:
        loaded: Its rows.
        frame: The same as a local relation, with the hint to broadcast it: no batch reads the source.
        loaded_at: Epoch seconds.
    """

    loaded: Loaded
    frame: DataFrame
    loaded_at: float


class ReferenceBook:
    """Gives the references in use; newer ones are offered by any thread, and taken between two batches."""

    def __init__(self, sources: Mapping[str, Source], in_use: Mapping[str, Reference]) -> None:
        self.sources = dict(sources)
        self._lock = threading.Lock()
        self._in_use = dict(in_use)
        self._offered: dict[str, Reference] = {}

    def frames(self) -> dict[str, DataFrame]:
        """Return what the transform gets: DataFrames by name."""
        return {name: one.frame for name, one in self._in_use.items()}

    def versions(self) -> dict[str, str]:
        """Return the versions in use, by name."""
        return {name: one.loaded.version.text for name, one in self._in_use.items()}

    def tokens(self) -> dict[str, str]:
        """Return what differs between any two versions, also of tables that replaced each other, by name."""
        return {name: one.loaded.version.token for name, one in self._in_use.items()}

    def in_use(self, name: str) -> Reference:
        """Return the version that batches use."""
        return self._in_use[name]

    def newest(self, name: str) -> Reference:
        """Return the version that is about to be used, or else the one in use."""
        with self._lock:
            return self._offered.get(name) or self._in_use[name]

    def offer(self, name: str, newer: Reference) -> None:
        """Have a version used from the next batch on."""
        with self._lock:
            self._offered[name] = newer

    @property
    def has_newer(self) -> bool:
        """Whether a version waits to be used."""
        return bool(self._offered)

    def turn(self) -> None:
        """Use what was offered. Only between two batches."""
        with self._lock:
            self._in_use = {**self._in_use, **self._offered}
            self._offered = {}


def open_book(session: SparkSession, spec: PipelineSpec, places: Places) -> ReferenceBook:
    """Return the book of a pipeline, with the newest version of each of its references.

    Args:
        session: Spark's.
        spec: The pipeline.
        places: Its places.

    Raises:
        ReferenceRefusedError: One of them cannot be read, or is not usable.
    """
    sources = {name: make_source(name, one, places) for name, one in spec.reference.items()}
    return ReferenceBook(sources, {name: make_reference(session, source.read_first()) for name, source in sources.items()})


def make_reference(session: SparkSession, loaded: Loaded) -> Reference:
    """Return rows as transforms get them."""
    schema = from_arrow_schema(loaded.rows.schema)
    return Reference(loaded, F.broadcast(LocalRelations(schema)(session, loaded.rows)), time.time())
