"""The files of a Delta table that hold deletion vectors, as its log names them.

A vector takes rows out of a data file that stays. Its file is named by the vector's id, not by its path; deltalake 1.6.6 takes
such files for files that nobody needs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote
from uuid import UUID

import pyarrow.parquet as pq
from deltalake import DeltaTable

from lakebound.storage.location import Location
from lakebound.storage.requests import ahead
from lakebound.tables.delta.checkpoints import list_log
from lakebound.tables.delta.draft import checkpoint_of
from lakebound.tables.delta.log import commit_file, commit_lines

INLINE: Mapping[str, Any] = {"storageType": "i", "pathOrInlineDv": ""}
"""The descriptor of a vector without a file."""

_ID_CHARACTERS = 20
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_VALUES = {character: number for number, character in enumerate(_Z85)}


def needed_files(folder: Location, handle: DeltaTable, since_ms: int) -> frozenset[str]:
    """Return what vacuum must leave: files with vectors, and the data files to which they belong.

    A version that was the newest at some time since then is needed. What it names is live now, or was removed since, by a
    commit that is in the log still.

    Args:
        folder: The table's.
        handle: The table's newest version.
        since_ms: Epoch milliseconds.

    Returns:
        Names relative to the folder, decoded.
    """
    live = checkpoint_of(folder, handle.version(), _adds)
    removed = (one for one in _removes(folder) if one.get("deletionTimestamp") is None or one["deletionTimestamp"] >= since_ms)
    return frozenset(_names(folder, (*live, *removed)))


def vector_file(vector: Mapping[str, Any]) -> str | None:
    """Return the file of a deletion vector: relative to the table's folder, or whole; None of one that is in the log itself.

    Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#deletion-vector-descriptor-schema.

    Args:
        vector: Its descriptor, as the log has it.

    Raises:
        ValueError: It is stored in a way that is not known here.
    """
    kind, where = vector["storageType"], vector["pathOrInlineDv"]
    if kind == "i":
        return None
    if kind == "p":
        return str(where)
    if kind != "u":
        raise ValueError(f"deletion vectors of the storage type {kind!r} are not known")
    prefix, encoded = where[:-_ID_CHARACTERS], where[-_ID_CHARACTERS:]
    name = f"deletion_vector_{UUID(bytes=_decoded(encoded))}.bin"
    return f"{prefix}/{name}" if prefix else name


def _decoded(text: str) -> bytes:
    """Return the bytes that a text in Z85 stands for: five characters are four bytes."""
    found = b""
    for start in range(0, len(text), 5):
        number = 0
        for character in text[start : start + 5]:
            number = number * len(_Z85) + _VALUES[character]
        found += number.to_bytes(4, "big")
    return found


def _names(folder: Location, actions: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    starts = (f"file://{folder.address}/", f"file:{folder.address}/", f"{folder.address.rstrip('/')}/")
    for action in actions:
        vector = action.get("deletionVector")
        named = [action["path"], vector_file(vector) if vector else None]
        for name in named:
            if name is not None:
                start = next((one for one in starts if name.startswith(one)), "")
                yield unquote(name.removeprefix(start))


def _adds(checkpoint: Any) -> list[dict[str, Any]]:
    return [row for row in pq.read_table(checkpoint, columns=["add"])["add"].to_pylist() if row and row["path"]]


def _removes(folder: Location) -> Iterator[dict[str, Any]]:
    files = [commit_file(folder, file.version) for file in list_log(folder) if file.is_commit]
    for content in map(Location.read, files) if folder.is_local else ahead(Location.read, files):
        text = content.decode()
        for line in commit_lines(text) if '"remove"' in text else ():
            action = json.loads(line)
            if "remove" in action:
                yield action["remove"]
