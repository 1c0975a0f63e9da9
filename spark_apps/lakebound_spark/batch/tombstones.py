"""Records without a value in a pipeline that deletes by them: each becomes the deletion of a key, or goes to quarantine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from lakebound.errors import LakeboundError
from lakebound.formats.framing import SCHEMA_HEADERS
from lakebound.formats.headers import HEADERS_TYPE, headers_of
from lakebound.landing.to_stores.record_keys import KeyFormat, ReadKey, key_reader, whole_key_of
from lakebound.landing.to_stores.store_rows import tombstone_rows
from lakebound.landing.to_stores.target import StoreTarget
from lakebound.spec.key import SchemaKeySpec
from lakebound.spec.pipeline import KAFKA_COLUMN, PipelineSpec
from lakebound.spec.tombstones import DELETE
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.fitting import fit_rows
from lakebound.tables.schemas import normalise_schema
from lakebound.tables.table import KAFKA_TYPE, DataFile
from lakebound.tables.target import LandingTarget
from lakebound_spark.batch.decode import HEADERS, KEY, is_skipped
from lakebound_spark.batch.schema import QUARANTINE_SCHEMA

REASON = "unreadable_key"
"""In the quarantine, of a tombstone whose key names no row."""
_SCHEMA_HEADER = SCHEMA_HEADERS["key"]
_OF_SCHEMA = ReadKey(
    problem="the record has no value, and its key is in a format with a schema, whose bytes are not taken for the key of a row"
)


class TombstonesMismatchError(LakeboundError):
    """A batch's tombstones, read once more for their keys, are not as many as were counted."""

    def __init__(self, counted: int, found: int) -> None:
        super().__init__(
            f"{counted} records of the batch were counted as tombstones, but {found} were found when they were read again; "
            f"nothing was committed, and the batch is landed again. Kafka may have compacted the topic meanwhile"
        )


@dataclass(frozen=True)
class Deletions:
    """What becomes of a batch's tombstones.

    Attributes:
        rows: Key and place of those whose key goes (``store_rows.tombstone_rows``).
        bad: The others, as rows of the quarantine table.
    """

    rows: pa.Table
    bad: pa.Table


class Tombstones:
    """Reads the keys of one pipeline's tombstones."""

    def __init__(self, key: str, kind: pa.DataType, whole: KeyFormat | None, *, have_schemas: bool = False) -> None:
        """Read nothing yet.

        Args:
            key: The key column of the stores.
            kind: Its type.
            whole: How the column holds the whole key of a record; None where it does not.
            have_schemas: Whether keys are in a format with a schema: without a frame its bytes may look like a text.
        """
        self._have_schemas = have_schemas
        self._key = key
        self._kind = kind
        self._read = key_reader(key, kind, whole)

    def judged(self, found: pa.Table) -> Deletions:
        """Return what becomes of tombstones.

        Args:
            found: ``_kafka``, ``_key`` and ``_headers`` of each.
        """
        kafka = found[KAFKA_COLUMN].combine_chunks().cast(KAFKA_TYPE)
        keys, headers = found[KEY].combine_chunks(), found[HEADERS].combine_chunks().cast(HEADERS_TYPE)
        named = [any(name == _SCHEMA_HEADER for name, _ in one or ()) for one in headers_of(headers)]
        read = [
            _OF_SCHEMA if key is not None and (self._have_schemas or has_header) else self._read(key)
            for key, has_header in zip(keys.to_pylist(), named, strict=True)
        ]
        good = pa.array([at for at, one in enumerate(read) if one.problem is None], pa.int64())
        bad = pa.array([at for at, one in enumerate(read) if one.problem is not None], pa.int64())
        values = pa.array([one.value for one in read if one.problem is None], self._kind)
        problems = [one.problem for one in read if one.problem is not None]
        raw = [keys.take(bad), pa.nulls(len(bad), pa.binary()), headers.take(bad)]
        columns = [kafka.take(bad), [REASON] * len(bad), problems, *raw]
        quarantined = pa.table(columns, names=QUARANTINE_SCHEMA.names).cast(QUARANTINE_SCHEMA)
        return Deletions(tombstone_rows(self._key, values, kafka.take(good)), quarantined)


def make_tombstones(spec: PipelineSpec, output: StructType) -> Tombstones | None:
    """Return what reads the keys of a pipeline's tombstones; None where none deletes, or where no row has the key.

    Args:
        spec: The pipeline.
        output: Columns of its rows.
    """
    if spec.null_values != DELETE or spec.to_stores[0].key not in output.names:
        return None
    key = spec.to_stores[0].key
    (column,) = normalise_schema(to_arrow_schema(StructType([output[key]])))
    return Tombstones(key, column.type, whole_key_of(spec, key), have_schemas=isinstance(spec.key, SchemaKeySpec))


def skipped_columns(decoded: DataFrame) -> DataFrame:
    """Return ``_kafka``, ``_key`` and ``_headers`` of the tombstones among decoded records."""
    return decoded.where(is_skipped()).select(F.col(KAFKA_COLUMN), F.col(KEY), F.col(HEADERS))


def write_tombstones(rows: pa.Table, tables: Sequence[LandingTarget], tag: str) -> Mapping[str, list[DataFile]]:
    """Write the keys that go as files of each store; tables and topics skip them.

    Args:
        rows: As in ``Deletions``.
        tables: The targets.
        tag: Start of the files' names; it is unique per attempt.
    """
    if not rows.num_rows:
        return {}
    stores = [one for one in tables if isinstance(one, StoreTarget)]
    return {one.spec.id: write_data_files(fit_rows(rows, one.schema()), one.layout(), tag) for one in stores}
