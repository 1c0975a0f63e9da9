"""What a new pipeline may say of the keys and headers that sampled records have. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from lakebound.formats.contract import Headers
from lakebound.formats.framing import KEY_HEADER, VALUE_HEADER
from lakebound.formats.same_names import as_compared
from lakebound.spec.draft.inference import ddl_name, infer, is_object
from lakebound.spec.draft.unknown_fields import in_yaml

MOST_HEADERS = 20
"""That are named, the most frequent first; a topic may have many, and with them ids that differ from record to record."""
_SUFFIX = "_of_record"


def key_and_headers(
    keys: Sequence[bytes | None],
    headers: Sequence[Headers | None],
    taken: Collection[str],
    registered: Mapping[str, str] | None = None,
) -> list[str]:
    """Return lines of YAML that land what a sample has of keys and headers; none where it has neither.

    Args:
        keys: Of the sampled records.
        headers: Of each of them.
        taken: Names that columns have already.
        registered: Fields of ``key``, where a registry has the schemas of the keys.
    """
    names = {as_compared(name) for name in taken}
    return [*_key(keys, names, registered or {}), *_headers(headers, names)]


def _key(keys: Sequence[bytes | None], names: set[str], registered: Mapping[str, str]) -> Iterator[str]:
    present = [key for key in keys if key is not None]
    if not present:
        return
    column = _free("key", names)
    if registered:
        yield f"key: {{{', '.join(f'{name}: {in_yaml(value)}' for name, value in registered.items())}, as: {in_yaml(column)}}}"
        return
    if all(map(is_object, present)) and (columns := infer(present).columns):
        schema = ", ".join(f"{ddl_name(one.name)} {one.type}" for one in columns)
        yield f"key: {{format: json, schema: {json.dumps(schema, ensure_ascii=False)}, as: {in_yaml(column)}}}"
    else:
        kind = "string" if all(map(_is_text, present)) else "bytes"
        yield f"key: {{format: {kind}, as: {in_yaml(column)}}}"


def _headers(headers: Sequence[Headers | None], names: set[str]) -> Iterator[str]:
    # Headers that name a schema are for the decoder.
    named = [{name for name, _ in one} - {KEY_HEADER, VALUE_HEADER} for one in headers if one]
    found = Counter(name for names_of_one in named for name in names_of_one)
    if not found:
        return
    yield "headers:"
    for name, _ in found.most_common(MOST_HEADERS):
        values = [value for one in headers if one for own, value in one if own == name and value is not None]
        kind = "" if all(map(_is_text, values)) else ", type: BINARY"
        column = _free(name or "nameless", names)
        told = "" if column == name else f", as: {in_yaml(column)}"
        yield f"  - {{name: {in_yaml(name)}{told}{kind}}}"
    if len(found) > MOST_HEADERS:
        yield f"  - {{all: true, as: {in_yaml(_free('headers', names))}}}"


def _free(name: str, names: set[str]) -> str:
    """Return a name that no column has, and note it."""
    while as_compared(name) in names or as_compared(name) == "_kafka":
        name = f"{name}{_SUFFIX}"
    names.add(as_compared(name))
    return name


def _is_text(value: bytes) -> bool:
    try:
        return value.decode().isprintable()
    except UnicodeDecodeError:
        return False
