"""Reading reference data: by the driver and without Spark, so that it disturbs no batch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from lakebound.errors import ReferenceRefusedError
from lakebound.redaction import redacted
from lakebound.spec.reference import ReferenceSpec
from lakebound.spec.table import TableSpec
from lakebound.storage.location import Location
from lakebound.tables.delta.open import open_delta
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.places import Places
from lakebound.tables.schemas import normalise_schema
from lakebound_spark.reference import csv_files
from lakebound_spark.reference.loaded import Loaded, UnusableReferenceError, Version, check_size
from lakebound_spark.reference.rules import ReferenceFacts, key_problem, problem_in, size_problem

if TYPE_CHECKING:
    from pyiceberg.table import Table as IcebergTable

_SUFFIXES = {"parquet": ".parquet", "csv": ".csv"}


@dataclass(frozen=True)
class Source:
    """Where reference data comes from.

    Attributes:
        name: The transform's name for it.
        spec: As it is declared.
        look: Returns the newest version, and reads no rows.
        load: Reads the rows of the newest version.
    """

    name: str
    spec: ReferenceSpec
    look: Callable[[], Version]
    load: Callable[[], Loaded]

    def read(self, before: Loaded | None = None) -> Loaded:
        """Return the newest version, after it was found to be usable.

        Args:
            before: The version in use. Columns that it does not have are left out, because the tables have none for them.

        Raises:
            UnusableReferenceError: It is not usable.
        """
        loaded = self.load()
        types = None if before is None else types_of(before.rows.schema)
        problem = problem_in(facts_of(loaded.rows, self.spec.key), self.spec.key, types)
        if problem is not None:
            raise UnusableReferenceError(problem)
        return loaded if before is None else Loaded(loaded.version, loaded.rows.select(before.rows.column_names))

    def read_first(self) -> Loaded:
        """Return the newest version, for a start.

        Raises:
            ReferenceRefusedError: It cannot be read, or is not usable.
        """
        try:
            return self.read()
        except Exception as exc:
            problem = str(exc) if isinstance(exc, UnusableReferenceError) else f"it cannot be read: {redacted(exc)}"
            raise ReferenceRefusedError(self.name, self.spec.told, problem) from exc


def make_source(name: str, spec: ReferenceSpec, places: Places) -> Source:
    """Return a source; nothing is opened yet.

    Args:
        name: The transform's name for it.
        spec: As it is declared.
        places: Those of the pipeline.
    """
    if spec.format == "delta":
        return Source(name, spec, lambda: _delta(spec, places)[1], lambda: _load_delta(spec, places))
    if spec.format == "iceberg":
        return Source(name, spec, lambda: _iceberg(spec, places)[1], lambda: _load_iceberg(spec, places))
    if spec.format == "postgres":
        from lakebound_spark.reference import postgres  # few pipelines have it, and its client takes 0.2 s to import

        return Source(name, spec, lambda: postgres.look(name, spec), lambda: postgres.load(name, spec))
    return Source(name, spec, lambda: _files_version(_files(spec, places)), lambda: _load_files(spec, places))


def facts_of(rows: pa.Table, key: tuple[str, ...]) -> ReferenceFacts:
    """Return what matters of rows.

    Args:
        rows: All of a reference.
        key: Its declared key.
    """
    types, size = types_of(rows.schema), rows.nbytes
    if key_problem(key, types) or size_problem(rows.num_rows, size):
        return ReferenceFacts(types, rows.num_rows, size)
    keys = rows.select(list(key))
    null = keys.num_rows - keys.drop_null().num_rows
    try:
        distinct = keys.group_by(list(key)).aggregate([]).num_rows
    except pa.ArrowNotImplementedError as exc:
        kinds = ", ".join(f"{column} is {types[column]}" for column in key)
        raise UnusableReferenceError(f"its key cannot be compared: {kinds}; name columns of simple types") from exc
    return ReferenceFacts(types, rows.num_rows, size, null, rows.num_rows - distinct)


def types_of(schema: pa.Schema) -> dict[str, str]:
    """Return the type of each column, by its name."""
    return {field.name: str(field.type) for field in schema}


def _delta(spec: ReferenceSpec, places: Places) -> tuple[DeltaTable, Version]:
    folder = places.folder(_table(spec)) if spec.name else Location(str(_in_folder(spec, places)))
    try:
        handle = open_delta(folder, spec.told)
    except TableNotFoundError as exc:
        raise UnusableReferenceError(f"there is no Delta table at {folder}") from exc
    return handle, Version(str(handle.version()), f"{handle.metadata().id}@{handle.version()}")


def _load_delta(spec: ReferenceSpec, places: Places) -> Loaded:
    handle, version = _delta(spec, places)
    counts = pa.table(handle.get_add_actions(flatten=True))["num_records"].to_pylist()
    check_size(None if None in counts else sum(counts))
    return Loaded(version, _normalised(handle.to_pyarrow_table()))


def _iceberg(spec: ReferenceSpec, places: Places) -> tuple[IcebergTable, Version]:
    from pyiceberg.exceptions import NoSuchTableError

    table = _table(spec)
    try:
        loaded = open_catalog(places.read_only()).load_table((table.namespace, table.short_name))
    except NoSuchTableError as exc:
        raise UnusableReferenceError(f"there is no Iceberg table {table.namespace}.{table.short_name} in the catalog") from exc
    snapshot = loaded.current_snapshot()
    text = "empty" if snapshot is None else str(snapshot.snapshot_id)
    return loaded, Version(text, f"{loaded.metadata.table_uuid}@{text}")


def _load_iceberg(spec: ReferenceSpec, places: Places) -> Loaded:
    loaded, version = _iceberg(spec, places)
    snapshot = loaded.current_snapshot()
    told = None if snapshot is None or snapshot.summary is None else snapshot.summary.additional_properties.get("total-records")
    check_size(None if told is None else int(told))
    scan = loaded.scan() if snapshot is None else loaded.scan(snapshot_id=snapshot.snapshot_id)
    return Loaded(version, _normalised(scan.to_arrow()))


def _load_files(spec: ReferenceSpec, places: Places) -> Loaded:
    files = _files(spec, places)
    version = _files_version(files)
    rows = pa.concat_tables([_read_file(spec, file) for file in files], promote_options="default")
    if _files_version(_files(spec, places)) != version:
        raise UnusableReferenceError("its files changed while they were read; they are read again at the next look")
    return Loaded(version, rows)


def _read_file(spec: ReferenceSpec, file: Path) -> pa.Table:
    if spec.format == "parquet":
        return _read_parquet(file)
    check_size(None, file.stat().st_size)
    return _read_csv(spec, file)


def _read_parquet(file: Path) -> pa.Table:
    try:
        check_size(pq.read_metadata(file).num_rows)
        rows = pq.ParquetFile(file).read()
    except pa.ArrowInvalid as exc:
        raise UnusableReferenceError(f"{file.name} is not a whole file of Parquet; write it again") from exc
    return _normalised(rows)


def _read_csv(spec: ReferenceSpec, file: Path) -> pa.Table:
    types: dict[str, pa.DataType] = {}
    if spec.csv_schema is not None:
        declared = cast(StructType, StructType.fromDDL(spec.csv_schema))
        types = {field.name: _in_csv(field.type) for field in to_arrow_schema(declared)}
    return _normalised(csv_files.rows_of(file, types))


def _in_csv(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_nested(kind):
        raise UnusableReferenceError("'schema' has a nested type, which CSV cannot hold")
    return pa.timestamp("us") if pa.types.is_timestamp(kind) else kind


def _normalised(rows: pa.Table) -> pa.Table:
    return rows.cast(normalise_schema(rows.schema))


def _table(spec: ReferenceSpec) -> TableSpec:
    assert spec.name is not None and spec.format in ("delta", "iceberg")
    return TableSpec(format="delta" if spec.format == "delta" else "iceberg", name=spec.name)


def _in_folder(spec: ReferenceSpec, places: Places) -> Path:
    """Return the path, links followed: who writes YAML cannot read other files of the machine."""
    folder = places.references.resolve() if places.references is not None else None
    path = (folder / (spec.path or "")).resolve() if folder is not None else None
    if folder is None or path is None or not path.is_relative_to(folder) or path == folder:
        raise UnusableReferenceError(f"{spec.path} is not in the folder {folder}; put it there, or set LAKEBOUND_REFERENCES")
    if not path.exists():
        raise UnusableReferenceError(f"there is no {path}")
    return path


def _files(spec: ReferenceSpec, places: Places) -> list[Path]:
    path = _in_folder(spec, places)
    if path.is_file():
        return [path]
    found = sorted(file for file in path.iterdir() if file.suffix == _SUFFIXES[spec.format] and file.name[0] not in "._")
    if not found:
        raise UnusableReferenceError(f"there are no files *{_SUFFIXES[spec.format]} in {path}")
    return found


def _files_version(files: list[Path]) -> Version:
    facts = [(file.name, stat.st_size, stat.st_mtime_ns) for file in files for stat in (file.stat(),)]
    text = f"files-{hashlib.sha256(repr(facts).encode()).hexdigest()[:16]}"
    return Version(text, text)
