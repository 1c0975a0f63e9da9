"""The assembly: decoder, transform, checks and lanes of one pipeline, made here for all who land, try or check its records."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from lakebound.landing.direct_read import DirectReader
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.layout import FileLayout
from lakebound_spark.batch.decode import Decoder, make_decoder
from lakebound_spark.batch.decoded_rows import RowDecoder, row_decoder
from lakebound_spark.batch.direct import DirectLane
from lakebound_spark.batch.failing_records import RaisingRecords
from lakebound_spark.batch.landable import Bound, LandableCheck, make_check
from lakebound_spark.batch.lanes import How
from lakebound_spark.batch.local_transform import LocalTransform
from lakebound_spark.batch.plan_keeper import PlanKeeper
from lakebound_spark.batch.record_format import key_schema, value_schema
from lakebound_spark.batch.rehearsal import Rehearsal
from lakebound_spark.batch.row_writer import LeftOut
from lakebound_spark.batch.tombstones import Tombstones, make_tombstones
from lakebound_spark.landing.parts import SessionParts


@dataclass(frozen=True)
class Assembly:
    """What makes rows of one pipeline's records, as its schema, its topics and its tables are now.

    Its parts are made when they are first asked for, and stay the same from batch to batch. Where the schema, the topics or
    the columns of the tables become others, another assembly is made: the two share nothing but the process and the session.

    Attributes:
        planned: The transform, as a session has planned it.
        topic_ids: Every row carries its topic's id; by the topic's name.
        layouts: Of the targets' files.
        unhoused: Fields of records for which a table has no column, and that send a record to quarantine.
        left_out: Columns that a target does not get, by its id.
        bounds: What topics and stores ask of the rows.
    """

    planned: SessionParts
    topic_ids: Mapping[str, str]
    layouts: Sequence[FileLayout] = ()
    unhoused: Collection[str] = frozenset()
    left_out: LeftOut = field(default_factory=dict)
    bounds: Sequence[Bound] = ()

    @property
    def spec(self) -> PipelineSpec:
        """The pipeline."""
        return self.planned.spec

    @cached_property
    def decoder(self) -> Decoder:
        """The decoder of the records, in executors."""
        return self.decoder_of(self.topic_ids)

    def decoder_of(self, topic_ids: Mapping[str, str]) -> Decoder:
        """Return the decoder of records that were read from topics with other ids."""
        return make_decoder(self.spec, topic_ids, self.unhoused)

    @cached_property
    def check(self) -> LandableCheck:
        """Finds rows that cannot land."""
        return make_check(self.planned.output, self.layouts, has_transform=self.planned.has_transform, bounds=self.bounds)

    @cached_property
    def how(self) -> How:
        """How rows become files."""
        return How(self.check, self.planned.multiplies, self.left_out, self.planned.hour_column)

    @cached_property
    def tombstones(self) -> Tombstones | None:
        """Reads the keys of records without a value; None where none deletes."""
        return make_tombstones(self.spec, self.planned.output)

    @cached_property
    def raising(self) -> RaisingRecords | None:
        """Finds records on which the transform raises; None without one."""
        if not self.planned.has_transform:
            return None
        return RaisingRecords(self.spec, self.planned.transform, self.planned.given)

    @cached_property
    def row_decoder(self) -> RowDecoder:
        """The decoder of records that the driver holds."""
        return row_decoder(self.spec, self.topic_ids, self.unhoused)

    @cached_property
    def local_transform(self) -> LocalTransform | None:
        """The transform on rows that the driver holds; None where decoded records are rows already."""
        if not self.planned.spark_makes_rows:
            return None
        keeper = PlanKeeper(self.planned.transform, self.planned.references.tokens)
        return LocalTransform(keeper, self.planned.given)

    def direct_lane(self) -> DirectLane | None:
        """Return a lane in which the driver reads and decodes; None where the pipeline does without."""
        if not self.spec.driver_lane.direct:
            return None
        reader = DirectReader(self.spec.connection, self.spec.pipeline)
        return DirectLane(reader, self.row_decoder, self.check, self.local_transform, self.raising)

    def rehearsal(self) -> Rehearsal | None:
        """Return the rehearsal of the first batch that the driver reads; None where that needs nothing of Spark."""
        if self.local_transform is None:
            return None
        value, key = value_schema(self.spec), key_schema(self.spec)
        return Rehearsal(value, self.spec.topics[0], self.row_decoder, self.local_transform, key)
