"""Schemas in files of the project: the folder ``schemas`` beside that of the pipelines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from lakebound.errors import LakeboundError
from lakebound.formats.kinds import schema_reader
from lakebound.formats.schemas import PartOfRecord, Reference, SchemaKind, SchemaText, UnreadableSchemaError
from lakebound.settings import Settings
from lakebound.spec.named_files import UnusableFileError, read_bounded
from lakebound.spec.pipeline import PipelineSpec

_MOST_FILES = 200


class SchemaFileError(LakeboundError, is_refusal=True):
    """A file with a schema cannot be read.

    Attributes:
        part: Of which part of the records.
        problem: The file, and what is wrong with it.
    """

    def __init__(self, pipeline: str, part: PartOfRecord, file: str, problem: str) -> None:
        self.part, self.problem = part, f"{file}: {problem}"
        super().__init__(f"pipeline {pipeline!r}: {part}.schema_file: {self.problem}")


def schemas_folder(settings: Settings) -> Path:
    """Return the folder of the files with schemas: beside that of the pipelines."""
    return settings.pipelines.parent / "schemas"


SchemaFiles = Mapping[PartOfRecord, SchemaText]
"""The schemas that a pipeline names as files, by the part of the records that they are of."""


def read_schema_files(spec: PipelineSpec, settings: Settings) -> dict[PartOfRecord, SchemaText]:
    """Return the schemas that a pipeline names as files, by the part of the records that they are of.

    Args:
        spec: The pipeline.
        settings: This machine's.

    Raises:
        SchemaFileError: A file is not there, or cannot be read.
    """
    folder = schemas_folder(settings)
    return {
        part: _Files(spec.pipeline, part, folder, source.format).read(source.schema_file)
        for part, source in spec.schema_sources.items()
        if source.schema_file is not None
    }


class _Files:
    """The files of one schema: what it imports is read, too."""

    def __init__(self, pipeline: str, part: PartOfRecord, folder: Path, kind: SchemaKind) -> None:
        self._pipeline, self._part, self._folder, self._kind = pipeline, part, folder, kind
        self._open: list[str] = []
        self._count = 0

    def read(self, name: str) -> SchemaText:
        """Return a schema with all that it imports."""
        if name in self._open:
            raise SchemaFileError(self._pipeline, self._part, name, f"imports itself, through {' and '.join(self._open)}")
        self._count += 1
        if self._count > _MOST_FILES:
            raise SchemaFileError(self._pipeline, self._part, name, f"is one of more than {_MOST_FILES} imported files")
        text = self._text(name)
        self._open.append(name)
        imported = tuple(Reference(one, self.read(one)) for one in self._imports(name, text))
        self._open.pop()
        return SchemaText(self._kind, text, imported)

    def _imports(self, name: str, text: str) -> tuple[str, ...]:
        try:
            return schema_reader(self._kind).imports_of(text)
        except UnreadableSchemaError as exc:
            raise SchemaFileError(self._pipeline, self._part, name, str(exc)) from exc

    def _text(self, name: str) -> str:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise SchemaFileError(self._pipeline, self._part, name, f"must be a path in the folder {self._folder}, without ..")
        file = self._folder / path
        if not file.resolve().is_relative_to(self._folder.resolve()):
            raise SchemaFileError(self._pipeline, self._part, name, f"leads out of the folder {self._folder}")
        try:
            return read_bounded(file)
        except UnusableFileError as exc:
            problem = f"{exc}; files with schemas are in the folder {self._folder}"
            raise SchemaFileError(self._pipeline, self._part, name, problem) from None
