"""The files of a Structured Streaming checkpoint, parsed as strictly as Spark does, or more strictly. Pure: bytes in.

A file that cannot be read has a ``flaw``: the precise reason, and nothing else.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakebound.landing.checkpoint.checksums import Checksum, checksum_of

Mark = tuple[int, str, int]
"""Source (its place in the plan), topic, partition."""

MISMATCH = "its .crc does not match"
"""The one flaw that Spark does not notice."""

_LINES = re.compile(r"\r\n|\n|\r")
_NAMED_SOURCE = re.compile(r"^[A-Za-z0-9_-]+:")


class FlawError(ValueError):
    """A file is not what Spark writes; the text is the flaw."""


@dataclass(frozen=True)
class MetadataFile:
    """``metadata``: the query's id."""

    query_id: str | None
    flaw: str | None
    checksum: Checksum


@dataclass(frozen=True)
class OffsetsFile:
    """``offsets/N`` or ``sources/I/0``: where each source of a batch ends.

    Attributes:
        batch: N.
        flaw: Why it cannot be read; None when it can.
        checksum: Whether its .crc vouches for it.
        content: As it is.
        planned_at_ms: When the driver planned the batch; None where the file does not say.
        sources: One line of JSON per source in plan order; None for a source without an offset.
        marks: The next offset to read, per partition of each Kafka source. Other sources have none.
    """

    batch: int
    flaw: str | None
    checksum: Checksum
    content: bytes = field(repr=False)
    planned_at_ms: int | None = None
    sources: tuple[str | None, ...] = ()
    marks: Mapping[Mark, int] = field(default_factory=dict)

    @property
    def records_are_countable(self) -> bool:
        """Whether every source is Kafka, so that ranges can be counted."""
        return bool(self.marks) and len({source for source, _, _ in self.marks}) == len(self.sources)


@dataclass(frozen=True)
class CommitFile:
    """``commits/N``: the batch has ended."""

    batch: int
    flaw: str | None
    checksum: Checksum
    content: bytes = field(repr=False)


def parse_metadata(content: bytes, crc: bytes | None = None) -> MetadataFile:
    """Parse ``metadata``."""
    checksum = checksum_of(content, crc)
    try:
        _refuse_mismatch(content, checksum)
        body = _json(_text(content), "the JSON")
        query_id = body.get("id") if isinstance(body, dict) else None
        if not isinstance(query_id, str) or not _is_uuid(query_id):
            raise FlawError("it contains no query id")
    except FlawError as exc:
        return MetadataFile(None, str(exc), checksum)
    return MetadataFile(query_id, None, checksum)


def parse_offsets(batch: int, content: bytes, crc: bytes | None = None) -> OffsetsFile:
    """Parse ``offsets/N``: a version line, a line of metadata, and one line per source.

    Args:
        batch: N, the number of the batch in the file's name.
        content: The file's bytes.
        crc: Bytes of the ``.crc`` file beside it; None when there is none.
    """
    checksum = checksum_of(content, crc)
    try:
        version, lines = _versioned(content, checksum, ("v1", "v2"))
        if len(lines) < 2:
            raise FlawError("only the version line is there" if not lines else "there is no line of a source")
        metadata = _object(lines[0], "the metadata line") if lines[0].strip() else {}
        sources = tuple(_source(line, version) for line in lines[1:])
        return OffsetsFile(batch, None, checksum, content, _planned_at(metadata), sources, _marks(sources))
    except FlawError as exc:
        return OffsetsFile(batch, str(exc), checksum, content)


def parse_initial_offsets(content: bytes, crc: bytes | None = None, source: int = 0) -> OffsetsFile:
    """Parse ``sources/I/0``: a zero byte, a version line, and the offsets at which Kafka was read first.

    Args:
        content: The file's bytes.
        crc: Bytes of the ``.crc`` file beside it; None when there is none.
        source: I, the number of the source in the file's path.
    """
    checksum = checksum_of(content, crc)
    try:
        _refuse_mismatch(content, checksum)
        if content[:1] != b"\0":
            raise FlawError("the zero byte at its start is missing")
        _, lines = _versioned(content[1:], checksum, ("v1",))
        if len(lines) != 1:
            raise FlawError("there is not exactly one line of offsets")
        sources = (lines[0],)
        return OffsetsFile(0, None, checksum, content, None, sources, _marks(sources, first=source))
    except FlawError as exc:
        return OffsetsFile(0, str(exc), checksum, content)


def parse_commit(batch: int, content: bytes, crc: bytes | None = None) -> CommitFile:
    """Parse ``commits/N``: a version line, and a line of metadata that may be absent in version 1.

    Args:
        batch: N, the number of the batch in the file's name.
        content: The file's bytes.
        crc: Bytes of the ``.crc`` file beside it; None when there is none.
    """
    checksum = checksum_of(content, crc)
    needed = {"v1": (), "v2": ("stateUniqueIds",), "v3": ("sinkMetadataMap",)}
    try:
        version, lines = _versioned(content, checksum, tuple(needed))
        body = _object(lines[0], "the metadata line") if lines else {}
        if any(name not in body for name in needed[version]):
            raise FlawError(f"version {version} without {', '.join(needed[version])}")
    except FlawError as exc:
        return CommitFile(batch, str(exc), checksum, content)
    return CommitFile(batch, None, checksum, content)


def parse_marks(line: str, source: int = 0) -> dict[Mark, int]:
    """Return the marks in one Kafka source's offsets, empty for a source of another kind.

    Raises:
        FlawError: It is not JSON, or a Kafka offset with something else in it.
    """
    body = _json(line, "the offsets of a source")
    if not isinstance(body, dict) or not body or not all(isinstance(partitions, dict) for partitions in body.values()):
        return {}
    marks: dict[Mark, int] = {}
    for topic, partitions in body.items():
        for partition, offset in partitions.items():
            if not partition.isdecimal() or type(offset) is not int or offset < 0:
                raise FlawError(f"{topic!r} has an offset {offset!r} for a partition {partition!r}")
            marks[source, topic, int(partition)] = offset
    return marks


def _versioned(content: bytes, checksum: Checksum, known: tuple[str, ...]) -> tuple[str, list[str]]:
    _refuse_mismatch(content, checksum)
    lines = _LINES.split(_text(content))
    if lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise FlawError("it is empty")
    if lines[0] not in known:
        raise FlawError(f"its first line is {lines[0][:20]!r}, not a version that this doctor knows ({', '.join(known)})")
    return lines[0], lines[1:]


def _refuse_mismatch(content: bytes, checksum: Checksum) -> None:
    if not content:
        raise FlawError("it has 0 bytes")
    if checksum == "differs":
        raise FlawError(MISMATCH)


def _source(line: str, version: str) -> str | None:
    if version == "v2":
        named = _NAMED_SOURCE.match(line)
        if named is None:
            raise FlawError("a line of a source does not name it")
        line = line[named.end() :]
    if line == "-":
        return None
    _json(line, "the offsets of a source")
    return line


def _marks(sources: tuple[str | None, ...], first: int = 0) -> dict[Mark, int]:
    marks: dict[Mark, int] = {}
    for number, line in enumerate(sources, first):
        if line is not None:
            marks |= parse_marks(line, number)
    return marks


def _planned_at(metadata: Mapping[str, Any]) -> int | None:
    planned = metadata.get("batchTimestampMs")
    return planned if type(planned) is int else None


def _object(line: str, what: str) -> dict[str, Any]:
    body = _json(line, what)
    if not isinstance(body, dict):
        raise FlawError(f"{what} is not a JSON object")
    return body


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_no_twins, parse_constant=_no_constant)
    except FlawError:
        raise
    except (ValueError, RecursionError) as exc:
        raise FlawError(f"{what} cannot be read: it is cut or damaged") from exc


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise FlawError("a key stands twice in one JSON object")
    return found


def _no_constant(name: str) -> Any:
    raise FlawError(f"{name} is not a number of JSON")


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as exc:
        raise FlawError("it is not UTF-8") from exc


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False
