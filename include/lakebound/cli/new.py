"""``lakebound new``: the files of a new pipeline, with the schema of a topic's records."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakebound.cli.output import Json, number, print_json, say, show
from lakebound.errors import LakeboundError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakebound.formats.contract import Headers
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
    from lakebound.spec.draft.inference import is_object
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
    values, headers = sample.values, sample.readable_headers()
    seen = _values(topic, values, headers, settings)
    columns = seen.inferred.columns
    keys, taken = (sample.keys, [one.name for one in columns]) if columns else ((), ["key", "value"])
    beside = key_and_headers(keys, headers, taken, _registered_keys(topic, keys, headers, settings))
    is_json = columns and seen.registered is None
    fitting = [value for value in values if value and (is_object(value) or not is_json) and len(value) <= MOST_BYTES]
    return replace(
        seen,
        name=name,
        connection=written,
        samples=fitting[:MOST_SAMPLES],
        editor=editor,
        is_compacted=is_compacted(connection, topic),
        beside_values=beside,
    )


def _registered_keys(
    topic: str, keys: Sequence[bytes | None], headers: Sequence[Headers | None], settings: Settings
) -> Mapping[str, str]:
    """Return the fields of ``key`` where a registry has the schemas of a topic's keys; none where they name none."""
    from lakebound.formats.framing import KEY_HEADER
    from lakebound.inspection.registry_search import search_registries
    from lakebound.spec.draft.wire_format import wire_format_of
    from lakebound.spec.registries_file import load_registries

    wire = wire_format_of(keys, headers if keys else (), KEY_HEADER)
    found = None if wire is None else search_registries(topic, wire, load_registries(settings), "key").proposal
    return {} if found is None else found.fields


def _values(topic: str, values: Sequence[bytes | None], headers: Sequence[Headers | None], settings: Settings) -> Beginning:
    """Return how a topic's values are read: by the registry that has their schemas, or by what they are like."""
    from lakebound.inspection.registry_search import search_registries
    from lakebound.spec.draft.connect import connect_columns
    from lakebound.spec.draft.files import Beginning
    from lakebound.spec.draft.inference import Column, infer
    from lakebound.spec.draft.wire_format import foreign_frame_of
    from lakebound.spec.registries_file import load_registries, registries_file

    inferred = infer(values, headers)
    foreign, wire = foreign_frame_of(values), inferred.wire_format
    remarks = [] if foreign is None else [f"the values begin with {foreign}, which Lakebound does not read"]
    if columns := connect_columns(values):
        seen = replace(inferred, columns=columns, left_out=(), wire_format=None)
        return Beginning(topic, topic, "", seen, is_connects=True, remarks=remarks)
    if wire is None or inferred.objects > wire.records:
        return Beginning(topic, topic, "", inferred, remarks=remarks)
    registries = load_registries(settings)
    found = search_registries(topic, wire, registries)
    remarks += found.problems
    if found.proposal is None:
        known = ", ".join(registries) or "none"
        remarks.append(f"{registries_file(settings)} names these registries: {known}. None of them told the schemas")
        return Beginning(topic, topic, "", replace(inferred, columns=()), remarks=remarks)
    found_columns = tuple(Column(name, kind) for name, kind in found.columns)
    left = sum(value is not None for value in values) - wire.records
    if left:
        remarks.append(f"{number(left)} of the sampled records name no schema: they go to quarantine")
    seen = replace(inferred, columns=found_columns, wire_format=None, left_out=())
    return Beginning(topic, topic, "", seen, registered=found.proposal, remarks=remarks)


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
