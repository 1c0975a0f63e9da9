"""What files alone say of a pipeline's schemas: registries.yaml, and the files with schemas. No registry is asked."""

from __future__ import annotations

from collections.abc import Iterator

from lakebound.errors import InvalidRegistriesError, UnknownRegistryError
from lakebound.formats.schemas import UnreadableSchemaError
from lakebound.formats.versions import schemas_of_file
from lakebound.inspection.registry_check import refused_secret
from lakebound.landing.read_schemas import ColumnsRefusedError, SchemaBook, refused_schema
from lakebound.landing.schema_files import SchemaFileError, SchemaFiles, read_schema_files
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.placed import PlacedProblem
from lakebound.spec.registries_file import find_registry, registries_file


def schema_problems(spec: PipelineSpec, settings: Settings) -> list[PlacedProblem]:
    """Return what keeps a pipeline's schemas from being read, as far as files say it.

    The mistakes in ``registries.yaml`` itself are told by ``registry_problems``.

    Args:
        spec: The pipeline.
        settings: This machine's.
    """
    found = [*_registry_problems(spec, settings)]
    try:
        files = read_schema_files(spec, settings)
    except SchemaFileError as exc:
        return [*found, PlacedProblem(exc.problem, (exc.part, "schema_file"))]
    return [*found, *_column_problems(spec, files)]


def _registry_problems(spec: PipelineSpec, settings: Settings) -> Iterator[PlacedProblem]:
    for part, source in spec.schema_sources.items():
        if source.registry is None:
            continue
        try:
            is_wrong = refused_secret(source.registry, find_registry(source.registry, settings)) is not None
        except UnknownRegistryError as exc:
            yield PlacedProblem(str(exc), (part, "registry"))
            continue
        except InvalidRegistriesError:
            is_wrong = True
        if is_wrong:
            yield PlacedProblem(f"it cannot be used yet: {registries_file(settings)} has mistakes", (part, "registry"))


def _column_problems(spec: PipelineSpec, files: SchemaFiles) -> list[PlacedProblem]:
    """Return what is wrong with the columns of schemas in files, and with all columns together where a registry has none.

    Columns that a pipeline names in `schema:` are Spark's to read: what they leave out of a file does not count.
    """
    found = []
    names_columns = {part for part, source in spec.schema_sources.items() if source.value_schema is not None}
    for part, schema in files.items():
        if part in names_columns:
            continue
        try:
            schemas_of_file(schema, spec.schema_sources[part].record)
        except UnreadableSchemaError as exc:
            found.append(PlacedProblem(refused_schema(schema.kind, str(exc)), (part,)))
    if found or names_columns or not files or len(files) < len(spec.schema_sources):
        return found
    try:
        SchemaBook(spec, files, {}).spec  # noqa: B018
    except ColumnsRefusedError as exc:
        found.append(PlacedProblem(exc.problem, (exc.part,)))
    return found
