"""Reading reference data: by the driver and without Spark, so that it disturbs no batch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from lakebound.errors import ReferenceRefusedError
from lakebound.redaction import redacted
from lakebound.spec.reference import ReferenceSpec
from lakebound.spec.table_format import TABLE_FORMATS
from lakebound.tables.formats import PerFormat
from lakebound.tables.places import Places
from lakebound.tables.type_names import type_name
from lakebound_spark.reference import csv_files
from lakebound_spark.reference.loaded import (
    Loaded,
    UnusableReferenceError,
    Version,
    check_is_inside,
    check_size,
    in_folder,
    normalised,
)
from lakebound_spark.reference.rules import ReferenceFacts, key_problem, problem_in, size_problem

_LOOKS: PerFormat[Callable[[ReferenceSpec, Places], Version]] = PerFormat("lakebound_spark.reference", "look")
_LOADS: PerFormat[Callable[[ReferenceSpec, Places], Loaded]] = PerFormat("lakebound_spark.reference", "load")
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
    if spec.format in TABLE_FORMATS:
        look, load = _LOOKS.of(spec.format), _LOADS.of(spec.format)
        return Source(name, spec, lambda: look(spec, places), lambda: load(spec, places))
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
    """Return the type of each column, as a schema has it, by its name."""
    return {field.name: type_name(field.type) for field in schema}


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
    return normalised(rows)


def _read_csv(spec: ReferenceSpec, file: Path) -> pa.Table:
    types: dict[str, pa.DataType] = {}
    if spec.csv_schema is not None:
        declared = cast(StructType, StructType.fromDDL(spec.csv_schema))
        types = {field.name: _in_csv(field.type) for field in to_arrow_schema(declared)}
    return normalised(csv_files.rows_of(file, types))


def _in_csv(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_nested(kind):
        raise UnusableReferenceError("'schema' has a nested type, which CSV cannot hold")
    return pa.timestamp("us") if pa.types.is_timestamp(kind) else kind


def _files(spec: ReferenceSpec, places: Places) -> list[Path]:
    path = in_folder(spec, places)
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UnusableReferenceError(f"{path} is neither a file nor a folder")
    found = sorted(file for file in path.iterdir() if file.suffix == _SUFFIXES[spec.format] and file.name[0] not in "._")
    if not found:
        raise UnusableReferenceError(f"there are no files *{_SUFFIXES[spec.format]} in {path}")
    for file in found:
        check_is_inside(file, places)
    return found


def _files_version(files: list[Path]) -> Version:
    facts = [(file.name, stat.st_size, stat.st_mtime_ns) for file in files for stat in (file.stat(),)]
    text = f"files-{hashlib.sha256(repr(facts).encode()).hexdigest()[:16]}"
    return Version(text, text)
