"""``lakebound new``: the files of a new pipeline, with the schema of a topic's records."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakebound.cli.output import Json, number, print_json, say, show
from lakebound.errors import LakeboundError

if TYPE_CHECKING:
    from lakebound.settings import Settings
    from lakebound.spec.draft.files import Beginning

SAMPLE = 1000

Name = Annotated[str, typer.Argument(help="Pipeline name: lower-case letters, digits and _.")]
FromTopic = Annotated[str | None, typer.Option(help="Read a sample of this topic, and write the schema of its records.")]
Records = Annotated[
    int, typer.Option(min=1, max=100_000, help="Maximum number of records to sample; the newest of each partition are taken.")
]
Like = Annotated[
    str | None, typer.Option(help="Copy the connection (broker, login) of this pipeline. Default: LAKEBOUND_KAFKA.")
]


class FilesExistError(LakeboundError):
    """Something is already there; nothing is ever overwritten."""

    def __init__(self, name: str, paths: list[Path]) -> None:
        found = ", ".join(str(path) for path in paths)
        super().__init__(
            f"pipeline {name!r}: nothing was written, because these files exist already: {found}. Choose another name"
        )


def new(name: Name, from_topic: FromTopic = None, records: Records = SAMPLE, like: Like = None, json: Json = False) -> None:
    """Write the files of a new pipeline: YAML, transform, expectations and a test. Existing files are never changed.

    With --from-topic the schema is inferred from sampled records: types, nullable columns, times in seconds or milliseconds.
    Without it, the files contain an example schema.
    """
    import re

    from lakebound.inspection.validation.expectation_files import expectations_path
    from lakebound.settings import load_settings
    from lakebound.spec.draft.files import pipeline_yaml, transform_source
    from lakebound.spec.draft.judged import expectations_yaml, source_of_test
    from lakebound.spec.load import path_of
    from lakebound.spec.table import NAME

    settings = load_settings()
    if not re.fullmatch(NAME, name):
        raise typer.BadParameter(
            f"{name!r} is not a pipeline name; use [a-z][a-z0-9_]*, at most 63 characters", param_hint="NAME"
        )
    pipeline, test = path_of(name, settings), settings.apps.parent / "tests" / f"test_{name}.py"
    transform, expectations = settings.apps / "transforms" / f"{name}.py", expectations_path(name, settings)
    existing = [path for path in (pipeline, transform, expectations, test) if path.exists()]
    if existing:
        raise FilesExistError(name, existing)
    made = _beginning(name, from_topic, records, like, settings)
    texts = {
        pipeline: pipeline_yaml(made),
        transform: transform_source(made),
        expectations: expectations_yaml(made),
        test: source_of_test(made, Path(os.path.relpath(pipeline, test.parent)).as_posix()),
    }
    for path, text in texts.items():
        _write(path, text)
    if not (package := transform.with_name("__init__.py")).exists():
        _write(package, "")
    _tell(made, list(texts), as_json=json)


def _beginning(name: str, topic: str | None, records: int, like: str | None, settings: Settings) -> Beginning:
    from lakebound.landing.sampling import is_compacted, read_sample
    from lakebound.spec.connection import ConnectionSpec
    from lakebound.spec.draft.files import PLACEHOLDER, Beginning
    from lakebound.spec.draft.inference import infer, is_object
    from lakebound.spec.draft.judged import MOST_BYTES, MOST_SAMPLES
    from lakebound.spec.draft.key_and_headers import key_and_headers
    from lakebound.spec.load import load_pipeline

    connection = load_pipeline(like, settings).connection if like else ConnectionSpec(bootstrap_servers=settings.kafka)
    written = _connection_of(like, settings) if like else "bootstrap_servers: ${LAKEBOUND_KAFKA}   # or host:9092,host:9092"
    schema = settings.pipelines.parent / "pipeline.schema.json"
    editor = "# yaml-language-server: $schema=../pipeline.schema.json\n" if schema.is_file() else ""
    if topic is None:
        return Beginning(name, name, written, PLACEHOLDER, [b'{"id": "a", "at": "2026-01-01T12:00:00Z"}'], editor)
    say(f"new: reading up to {number(records)} records of {topic}")
    sample = read_sample(connection, (topic,), records, newest=True, reader=name).records
    inferred = infer(values := sample.values)
    taken = [one.name for one in inferred.columns] or ["key", "value"]
    beside = key_and_headers(sample.keys if inferred.columns else (), sample.headers(), taken)
    fitting = [value for value in values if value and (is_object(value) or not inferred.columns) and len(value) <= MOST_BYTES]
    compacted = is_compacted(connection, topic)
    return Beginning(name, topic, written, inferred, fitting[:MOST_SAMPLES], editor, compacted, beside)


def _connection_of(pipeline: str, settings: Settings) -> str:
    """Return the connection as the pipeline's file has it, its variables included."""
    import yaml

    from lakebound.spec.load import path_of
    from lakebound.spec.yaml_source import read_yaml

    text: str = yaml.safe_dump(read_yaml(path_of(pipeline, settings)).root["connection"], sort_keys=False)
    return text


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8") as file:
        file.write(text)


def _tell(made: Beginning, paths: list[Path], *, as_json: bool) -> None:
    from lakebound.spec.draft.files import notes_of_beginning

    notes = notes_of_beginning(made)
    if as_json:
        columns = [{"name": one.name, "type": one.type, "required": one.is_required} for one in made.inferred.columns]
        files = [str(path) for path in paths]
        print_json({"records": made.inferred.records, "columns": columns, "notes": notes, "files": files})
        return
    if made.inferred.records:
        show(f"{made.topic}: {number(made.inferred.records)} records, {len(made.inferred.columns)} columns")
    for note in notes:
        show(f"  {note}")
    for path in paths:
        show(f"written: {path}")
    show(f"next: lakebound check {made.name}; lakebound try {made.name}; pytest {paths[-1]}")
