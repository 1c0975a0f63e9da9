"""Reads pipeline YAML files; says of each mistake in which file, line and field it is. Imports nothing heavy.

``${NAME}`` and ``${NAME:-default}`` stand for environment variables in texts under ``connection``, under ``postgres`` of
reference data and under the server of a store, and nowhere else. Which ones, and where secrets may lie, is said by whoever runs
Lakebound (``lakebound.settings.YamlAccess``): who writes YAML cannot read the machine.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lakebound.errors import InvalidSpecError, UnknownPipelineError
from lakebound.settings import Settings, YamlAccess, load_settings, load_yaml_access
from lakebound.spec.author_rules import refusals, spark_refusals
from lakebound.spec.disputes import claimed_twice, disputed_lines, disputed_tables
from lakebound.spec.installation_file import Installation, read_installation
from lakebound.spec.mistakes import describe, secret_keys
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.pipeline_files import SUFFIXES, pipeline_files
from lakebound.spec.problem_lines import problem_line
from lakebound.spec.spark import SparkSettingsError
from lakebound.spec.table import TableSpec
from lakebound.spec.yaml_source import Keys, Mistake, UnreadableYamlError, YamlSource, read_yaml

MOST_LINES = 100
"""About one file: each round of the watch and each page tells them."""
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_SERVERS = ("postgres", "redis")


@dataclass(frozen=True)
class Contested:
    """A pipeline of which nothing is wrong but that another file names a table of it, too; and these tables."""

    spec: PipelineSpec
    tables: tuple[TableSpec, ...]


@dataclass(frozen=True)
class LoadedPipelines:
    """What a folder declares.

    Attributes:
        specs: The pipelines whose file is right, by name.
        mistakes: What is wrong with the others, by file: ``FILE:LINE: FIELD: what is wrong``.
        contested: Those of the others that are right but for tables that another file names, too: these tables, by pipeline.
            ``lakebound.tables.declared`` knows whose they are.
    """

    specs: dict[str, PipelineSpec] = field(default_factory=dict)
    mistakes: dict[Path, list[str]] = field(default_factory=dict)
    contested: dict[str, Contested] = field(default_factory=dict)

    @property
    def problems(self) -> list[str]:
        """All mistakes of all files."""
        return [line for lines in self.mistakes.values() for line in lines]


def load_pipelines(where: Settings | Path) -> LoadedPipelines:
    """Read every pipeline of the folder; a wrong file hides no other.

    Args:
        where: This machine's settings; or the folder alone, and then ``${LAKEBOUND_KAFKA}`` is this machine's.
    """
    settings_folder, kafka = _places(where)
    if not settings_folder.is_dir():
        line = f"{settings_folder}: this folder does not exist; create it, or set LAKEBOUND_PIPELINES"
        return LoadedPipelines(mistakes={settings_folder: [line]})
    files = pipeline_files(settings_folder)
    installation = read_installation(settings_folder)
    read = {path: _read(path, kafka, installation) for path in files.read}
    right = {path: spec for path, (spec, _) in read.items() if spec is not None}
    mistakes = {path: lines for path, (_, lines) in read.items() if lines} | files.mistakes
    if installation.problems:
        mistakes[installation.path] = list(installation.problems)
    disputed = claimed_twice(right)
    for path, claims in disputed.items():
        mistakes.setdefault(path, []).extend(disputed_lines(path, claims))
    specs = {spec.pipeline: spec for path, spec in right.items() if path not in mistakes}
    contested = {
        right[path].pipeline: Contested(right[path], tables)
        for path, claims in disputed.items()
        if (tables := disputed_tables(right[path], claims))
    }
    return LoadedPipelines(specs, dict(sorted(mistakes.items())), contested)


def load_pipeline(pipeline: str, where: Settings | Path) -> PipelineSpec:
    """Return one pipeline as its file says now.

    Args:
        pipeline: Its name.
        where: This machine's settings; or the folder of the YAML files alone.

    Raises:
        InvalidSpecError: Its YAML is wrong.
        UnknownPipelineError: No file declares it.
    """
    return choose_pipeline(pipeline, load_pipelines(where), _places(where)[0])


def choose_pipeline(pipeline: str, loaded: LoadedPipelines, folder: Path) -> PipelineSpec:
    """Return one pipeline of those that were read from a folder.

    Args:
        pipeline: Its name.
        loaded: What was read.
        folder: Where the YAML files are.

    Raises:
        InvalidSpecError: Its YAML is wrong.
        UnknownPipelineError: No file declares it.
    """
    if pipeline in loaded.specs:
        return loaded.specs[pipeline]
    own = [line for path, lines in loaded.mistakes.items() if path.stem == pipeline for line in lines]
    if own or not folder.is_dir():
        raise InvalidSpecError(own or loaded.problems)
    raise UnknownPipelineError(pipeline, list(loaded.specs), folder)


def load_unbound(settings: Settings) -> tuple[PipelineSpec, ...]:
    """Return the pipelines whose files are right, though their secrets may not be bound to the servers that they name."""
    folder = settings.pipelines
    installation = replace(read_installation(folder), binds=False)
    files = pipeline_files(folder).read if folder.is_dir() else ()
    read = (_read(path, settings.kafka, installation)[0] for path in files)
    return tuple(spec for spec in read if spec is not None)


def load_file(path: Path, settings: Settings | None = None) -> PipelineSpec:
    """Return the pipeline that a file declares, wherever the file lies.

    Args:
        path: The file.
        settings: This machine's settings; None: as the environment says.

    Raises:
        InvalidSpecError: The file is wrong.
    """
    places = settings or load_settings()
    installation = read_installation(places.pipelines)
    spec, lines = _read(path, places.kafka, installation)
    if spec is None:
        raise InvalidSpecError([*installation.problems, *lines])
    return spec


def path_of(pipeline: str, settings: Settings) -> Path:
    """Return the file that declares the pipeline, or would."""
    known = (settings.pipelines / f"{pipeline}{suffix}" for suffix in SUFFIXES)
    return next((path for path in known if path.is_file()), settings.pipelines / f"{pipeline}{SUFFIXES[0]}")


def _places(where: Settings | Path) -> tuple[Path, str]:
    if isinstance(where, Settings):
        return where.pipelines, where.kafka
    return where, load_settings().kafka


def _read(path: Path, kafka: str, installation: Installation) -> tuple[PipelineSpec | None, list[str]]:
    """Return the pipeline or, when the file is wrong, its mistakes: one file, whatever it says, hides no other."""
    try:
        spec, lines = _judged(path, kafka, installation)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as exc:
        # Without its text: it may repeat a value.
        spec, what = None, f"holds a value that cannot be judged ({type(exc).__name__}); undo the last change of this file"
        lines = [problem_line(path, Mistake(1, what))]
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], problem_line(path, Mistake(1, f"has {len(lines) - MOST_LINES} more mistakes"))]
    return spec, lines


def _judged(path: Path, kafka: str, installation: Installation) -> tuple[PipelineSpec | None, list[str]]:
    try:
        source = read_yaml(path)
    except UnreadableYamlError as exc:
        return None, [problem_line(path, exc.mistake)]
    if not isinstance(source.root, dict):
        found = "is empty" if source.root is None else f"holds a {type(source.root).__name__}"
        return None, [
            problem_line(path, Mistake(1, f"{found}; a pipeline file has keys and values, the first of them pipeline: NAME"))
        ]
    environment = {**os.environ, "LAKEBOUND_KAFKA": kafka}
    access, mistakes = load_yaml_access(), [*source.mistakes]
    body = _expanded(source, environment, access, mistakes)
    spec: PipelineSpec | None = None
    try:
        spec = PipelineSpec.model_validate(body)
    except ValidationError as exc:
        mistakes += describe(exc, source)
    if spec is not None and spec.pipeline != path.stem:
        what = f"is {spec.pipeline!r}, but the file is {path.name}; both must have the same name"
        mistakes.append(Mistake(source.line_of(("pipeline",)), what, ("pipeline",)))
    refused = [
        *spark_refusals(body.get("spark"), access, installation),
        *(refusals(spec, access, installation) if spec is not None else ()),
    ]
    mistakes += [Mistake(source.line_of(keys), what, keys) for keys, what in refused]
    if spec is not None and not mistakes and spec.spark.profile is not None:
        try:
            spec = _with_profile(spec, installation)
        except SparkSettingsError as exc:
            mistakes.append(Mistake(source.line_of(("spark",)), str(exc), ("spark",)))
    lines = [problem_line(path, mistake) for mistake in sorted(mistakes, key=lambda mistake: mistake.line)]
    return (None, lines) if lines else (spec, [])


def _with_profile(spec: PipelineSpec, installation: Installation) -> PipelineSpec:
    profile = installation.spec.spark_profiles[spec.spark.profile or ""]
    return spec.model_copy(update={"spark": spec.spark.with_profile(profile)})


def _expanded(
    source: YamlSource, environment: Mapping[str, str], access: YamlAccess, mistakes: list[Mistake]
) -> dict[str, Any]:
    """Return the file's root with its variables replaced; append what is missing or forbidden to ``mistakes``."""

    def expand(value: Any, keys: Keys) -> Any:
        if isinstance(value, dict):
            return {key: expand(item, (*keys, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [expand(item, (*keys, position)) for position, item in enumerate(value)]
        # A password written as text is refused anyway, with or without a variable.
        return _text(value, keys) if isinstance(value, str) and secret_keys(keys) != keys else value

    def _text(text: str, keys: Keys) -> str:
        def found(match: re.Match[str]) -> str:
            name, default = match[1], match[2]
            if not access.may_expand(name):
                mistakes.append(Mistake(source.line_of(keys), _forbidden_variable(name, access, keys), keys))
                return "unset"
            value = environment.get(name) or default
            if value is None:
                what = f"the environment variable {name} is not set; set it, or write ${{{name}:-default}}"
                mistakes.append(Mistake(source.line_of(keys), what, keys))
            return value or "unset"

        if "${" in _VARIABLE.sub("", text):
            mistakes.append(Mistake(source.line_of(keys), "write a variable as ${NAME} or ${NAME:-default}", keys))
        return _VARIABLE.sub(found, text)

    return _with_texts(source.root, expand)


def _with_texts(root: Mapping[str, Any], expand: Callable[[Any, Keys], Any]) -> dict[str, Any]:
    """Return the file's root after ``expand`` was given each part of it in which variables may stand."""
    found = dict(root)
    if "connection" in root:
        found["connection"] = expand(root["connection"], ("connection",))
    references = root.get("reference")
    if isinstance(references, dict):
        with_database = {name: one for name, one in references.items() if isinstance(one, dict) and "postgres" in one}
        found["reference"] = references | {
            name: {**one, "postgres": expand(one["postgres"], ("reference", name, "postgres"))}
            for name, one in with_database.items()
        }
    stores = root.get("to_stores")
    if isinstance(stores, list):
        found["to_stores"] = [
            {key: expand(part, ("to_stores", position, key)) if key in _SERVERS else part for key, part in one.items()}
            if isinstance(one, dict)
            else one
            for position, one in enumerate(stores)
        ]
    return found


def _forbidden_variable(name: str, access: YamlAccess, keys: Keys) -> str:
    if access.may_be_secret(name):
        where = "sasl.password" if keys[:1] == ("connection",) else "password"
        return f"the environment variable {name} holds a secret, which must not appear in a text; name it under {where}"
    or_else = "" if name.startswith("LAKEBOUND_") else f", or call it LAKEBOUND_{name}"
    return (
        f"the environment variable {name} may not be read here; whoever runs Lakebound can allow it with "
        f"LAKEBOUND_VARIABLES={name}{or_else}"
    )
