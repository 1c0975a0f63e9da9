"""What is wrong with a file of expectations, in the words and at the lines of its author. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from lakebound.inspection.validation.expectation_types import TableColumns, named_columns
from lakebound.inspection.validation.expectations import (
    OWN_KINDS,
    Expectation,
    ExpectationFile,
    ExpectationHead,
    GxExpectation,
    UniqueOverWindow,
    ValuesInTable,
)
from lakebound.inspection.validation.gx_catalog import CATALOG
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.yaml_source import Keys, Mistake, YamlSource

_KAFKA_FIELDS = ("topic", "topic_id", "partition", "offset", "timestamp", "ordinal")
_WORDS = {
    "missing": "is missing",
    "too_short": "must not be empty",
    "string_too_short": "must not be empty",
    "string_type": "must be text",
    "dict_type": "must be keys and values",
    "model_type": "must be keys and values",
    "tuple_type": "must be a list",
}


def parse(source: YamlSource) -> tuple[ExpectationFile | None, list[Mistake]]:
    """Return what the file says or, where it is wrong, all of its mistakes."""
    if not isinstance(source.root, dict):
        return None, [Mistake(1, "a file of expectations is keys and values, beginning with pipeline: NAME")]
    mistakes = list(source.mistakes)
    expectations: list[Expectation] = []
    try:
        head = ExpectationHead.model_validate(source.root)
    except ValidationError as exc:
        return None, [*mistakes, *_described(exc, source, ExpectationHead, ())]
    for position, body in enumerate(head.expectations):
        one, found = _expectation(body, ("expectations", position), source)
        mistakes += found
        expectations += [one] if one is not None else []
    mistakes += _same_labels(expectations, source) if len(expectations) == len(head.expectations) else []
    if mistakes:
        return None, mistakes
    fields = {name: getattr(head, name) for name in ExpectationHead.model_fields}
    return ExpectationFile.model_construct(**{**fields, "expectations": tuple(expectations)}), []


def table_mistakes(file: ExpectationFile, spec: PipelineSpec, source: YamlSource) -> list[Mistake]:
    """Return the mistakes that the pipeline alone tells: its name, and tables that it does not have.

    Args:
        file: The expectations, parsed.
        spec: The pipeline for which they are written.
        source: YAML of the file; tells the line of each mistake.
    """
    found = []
    if file.pipeline != spec.pipeline:
        keys: Keys = ("pipeline",)
        found.append(Mistake(source.line_of(keys), f"is {file.pipeline!r}, but the file is that of {spec.pipeline!r}", keys))
    known = [table.id for table in spec.tables]
    names = {*known, *(table.name for table in spec.tables)}
    for position, one in enumerate(file.expectations):
        for number, name in enumerate(one.tables):
            if name not in names:
                keys = ("expectations", position, "tables", number)
                found.append(Mistake(source.line_of(keys), f"{name!r} is not one of the tables: {', '.join(known)}", keys))
    return found


def column_mistakes(file: ExpectationFile, tables: TableColumns, source: YamlSource) -> list[Mistake]:
    """Return the columns that are named and that a table does not have, with those that it has.

    Args:
        file: The expectations, parsed.
        tables: Columns by table id; tables that are not in it are not checked.
        source: YAML of the file; tells the line of each mistake.
    """
    found: dict[tuple[Keys, str], Mistake] = {}
    for position, one in enumerate(file.expectations):
        for table, columns in tables.items():
            if one not in file.of(table):
                continue
            for keys, name in _named_columns(one):
                place: Keys = ("expectations", position, *keys)
                if not _is_column(name, columns):
                    what = (
                        f"{name!r} is not a column of {table}{_meant(name, tuple(columns))}; its columns: {', '.join(columns)}"
                    )
                    found.setdefault((place, name), Mistake(source.line_of(place), what, place))
    return list(found.values())


def sql_texts(file: ExpectationFile) -> dict[Keys, tuple[str, Expectation]]:
    """Return where the file has conditions in SQL, which Spark alone can check."""
    texts: dict[Keys, tuple[str, Expectation]] = {}
    for position, one in enumerate(file.expectations):
        for key in ("rule", "where"):
            text = getattr(one, key, None)
            if text:
                texts["expectations", position, key] = (text, one)
    return texts


def _expectation(body: Mapping[str, Any], place: Keys, source: YamlSource) -> tuple[Expectation | None, list[Mistake]]:
    name = body.get("expect")
    if isinstance(name, str) and name not in OWN_KINDS and name not in CATALOG:
        keys = (*place, "expect")
        close = difflib.get_close_matches(str(name), [*OWN_KINDS, *CATALOG], n=1)
        hint = f"did you mean {close[0]!r}?" if close else "see the list in docs/how-to/quality.md"
        return None, [Mistake(source.line_of(keys), f"{name!r} is not an expectation that can be used; {hint}", keys)]
    model: type[Expectation] = OWN_KINDS.get(str(name), GxExpectation)
    try:
        one = model.model_validate(body)
    except ValidationError as exc:
        return None, _described(exc, source, model, place)
    mistakes = list(_argument_mistakes(one, place, source)) if isinstance(one, GxExpectation) else []
    return (None, mistakes) if mistakes else (one, [])


def _argument_mistakes(one: GxExpectation, place: Keys, source: YamlSource) -> Iterator[Mistake]:
    kind = CATALOG[one.expect]
    place = (*place, "kwargs")
    for key in one.kwargs:
        if key not in kind.arguments:
            what = f"unknown argument of {one.expect}{_meant(key, kind.arguments)}; it takes: {', '.join(kind.arguments)}"
            yield Mistake(source.line_of((*place, key)), what, (*place, key))
    misspelt = {_closest(key, kind.arguments) for key in one.kwargs if key not in kind.arguments}
    for key in (*kind.columns, *kind.required):
        if one.kwargs.get(key) is None and key not in misspelt:
            yield Mistake(source.line_of(place), f"{one.expect} needs {key}", (*place, key))
    if one.where is not None and not kind.takes_where:
        keys = (*place[:-1], "where")
        yield Mistake(source.line_of(keys), f"{one.expect} applies to the whole range; it takes no condition", keys)


def _described(error: ValidationError, source: YamlSource, model: type[BaseModel], place: Keys) -> list[Mistake]:
    found = []
    details = error.errors(include_url=False, include_context=True)
    unknown = [str(detail["loc"][-1]) for detail in details if detail["type"] == "extra_forbidden"]
    misspelt = {_closest(name, tuple(model.model_fields)) for name in unknown}
    for detail in details:
        if detail["type"] == "missing" and detail["loc"][-1] in misspelt:
            continue
        keys: Keys = (*place, *detail["loc"])
        context = detail.get("ctx") or {}
        if detail["type"] == "extra_forbidden":
            known = tuple(model.model_fields)
            what = f"unknown key{_meant(str(keys[-1]), known)}; known here: {', '.join(sorted(known))}"
        elif detail["type"] in ("literal_error", "enum"):
            what = f"must be {str(context['expected']).replace(chr(39), '')}, not {detail['input']!r}"
        else:
            what = _WORDS.get(detail["type"], detail["msg"].removeprefix("Value error, ").replace("Input should be", "must be"))
        found.append(Mistake(source.line_of(keys), what, keys))
    return found


def _same_labels(expectations: Sequence[Expectation], source: YamlSource) -> Iterator[Mistake]:
    first: dict[str, int] = {}
    for position, one in enumerate(expectations):
        if one.label in first:
            keys: Keys = ("expectations", position)
            line = source.line_of(("expectations", first[one.label]))
            yield Mistake(
                source.line_of(keys), f"has the same name {one.label!r} as the one in line {line}; give it another name", keys
            )
        first.setdefault(one.label, position)


def _named_columns(one: Expectation) -> Iterator[tuple[Keys, str]]:
    if isinstance(one, GxExpectation):
        yield from ((("kwargs", *keys), name) for keys, name in named_columns(one))
    elif isinstance(one, UniqueOverWindow):
        yield from ((("columns", number), name) for number, name in enumerate(one.columns))
    elif isinstance(one, ValuesInTable):
        yield from ((("columns", name), name) for name in one.columns)


def _is_column(name: str, columns: Mapping[str, str]) -> bool:
    return name in columns or (name.startswith("_kafka.") and name.partition(".")[2] in _KAFKA_FIELDS)


def _meant(name: str, known: Sequence[str]) -> str:
    close = _closest(name, known)
    return f"; did you mean {close!r}?" if close else ""


def _closest(name: str, known: Sequence[str]) -> str | None:
    """Return the known name that was probably meant."""
    return next(iter(difflib.get_close_matches(name, known, n=1)), None)
