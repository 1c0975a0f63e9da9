"""What can happen to the files of a checkpoint: each corruption of each file, and of folders. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from tests.support.worlds.foreign_checkpoints import with_checksums

Files = Mapping[str, bytes]
Checksums = Literal["stale", "without", "nowhere", "fitting"]
"""The .crc of the damaged file stays; goes; was never there, nor any other; fits the new content (a whole file was copied)."""

_DIGITS = re.compile(rb"[0-9]+")


@dataclass(frozen=True)
class Corruption:
    """One damaged checkpoint.

    Attributes:
        kind: What was done.
        target: The file or folder; empty for the whole checkpoint.
    """

    kind: str
    target: str
    checksums: Checksums
    files: Files

    @property
    def fault(self) -> str:
        """Its kind without the place."""
        return next((kind for kind in ("checksum", "cut", "flip", "stray", "deleted") if kind in self.kind), self.kind)

    @property
    def name(self) -> str:
        """How a failing test calls it."""
        return f"{self.kind} of {self.target or 'everything'}, .crc {self.checksums}"


def of_files(files: Files, stale: Files, other: Files) -> Iterator[Corruption]:
    """Yield every corruption of every file.

    Args:
        files: The checkpoint.
        stale: Another, equally named file of the same query, older by content: what a wrong copy would put there.
        other: The checkpoint of another query.
    """
    for path, content in files.items():
        if path.endswith((".crc", ".tmp")) or "/." in path:
            continue
        for checksums in ("stale", "without", "nowhere"):
            base = (
                _without_checksums(files) if checksums == "nowhere" else _without(files, path, also_crc=checksums == "without")
            )
            yield Corruption("missing", path, checksums, _without(base, path))
            for kind, damaged in _damages(content):
                yield Corruption(kind, path, checksums, {**base, path: damaged})
        for kind, source in (("stale copy", stale), ("from another query", other)):
            if path in source and source[path] != content:
                for checksums in ("stale", "without", "nowhere", "fitting"):
                    yield Corruption(kind, path, checksums, _replaced(files, path, source[path], checksums))
        yield from _of_checksum(files, path)


def of_folders(files: Files) -> Iterator[Corruption]:
    """Yield what people and lifecycle rules delete."""
    for folders in (("offsets/",), ("commits/",), ("sources/",), ("offsets/", "commits/"), ("metadata", "sources/"), ("",)):
        left = {path: text for path, text in files.items() if not path.removeprefix(".").startswith(folders)}
        yield Corruption("deleted", " and ".join(folders), "stale", left)
    for log in ("offsets", "commits"):
        batches = sorted(int(path.removeprefix(f"{log}/")) for path in files if re.fullmatch(rf"{log}/\d+", path))
        for count in (2, 3):
            if len(batches) > count:
                gone = {f"{log}/{mark}{batch}{end}" for batch in batches[-count:] for mark, end in (("", ""), (".", ".crc"))}
                yield Corruption(
                    f"newest {count} deleted", log, "stale", {p: text for p, text in files.items() if p not in gone}
                )
        if batches:
            for name in ("999999", "0099", "+98"):
                stray = with_checksums({f"{log}/{name}": files[f"{log}/{batches[-1]}"]})
                yield Corruption(f"stray {name}", log, "fitting", {**files, **stray})


def _damages(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield contents that are empty, cut at each class of byte, bit-flipped in each class, or longer."""
    yield "empty", b""
    for name, at in _cuts(content):
        yield f"cut {name}", content[:at]
    for name, at, bit in _flips(content):
        yield f"flip {name}", content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :]
    yield "more bytes", content + b"\n{}"


def _cuts(content: bytes) -> Iterator[tuple[str, int]]:
    yield "after one byte", 1
    yield "before the last byte", len(content) - 1
    lines = [at for at, byte in enumerate(content) if byte == 0x0A]
    for number, at in enumerate(lines, 1):
        yield f"before newline {number}", at
        yield f"after newline {number}", at + 1
        yield f"within line {number + 1}", at + 1 + max(1, (len(content) - at) // 3)


def _flips(content: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield position and bit: version, line ends, time; and quote, brace, colon, letter and each number of the last line."""
    yield "first byte", 0, 1
    yield "second byte", min(1, len(content) - 1), 8
    for number, at in enumerate([at for at, byte in enumerate(content) if byte == 0x0A], 1):
        yield f"newline {number}", at, 4
    start = content.rfind(b"\n") + 1
    last = content[start:]
    for name, found in ((name, last.find(token)) for name, token in (("quote", b'"'), ("brace", b"{"), ("colon", b":"))):
        if found >= 0:
            yield f"last line's {name}", start + found, 1
    yield "last line's letter", start + min(3, len(last) - 1), 2
    for number, digits in enumerate(_DIGITS.finditer(last)):
        yield f"digit of number {number}, first", start + digits.start(), 1
        yield f"digit of number {number}, last", start + digits.end() - 1, 2
    timestamp = content.find(b'batchTimestampMs":')
    if timestamp >= 0:
        yield "digit of the time", timestamp + len(b'batchTimestampMs":') + 3, 1


def _of_checksum(files: Files, path: str) -> Iterator[Corruption]:
    crc = _crc(path)
    if crc in files:
        good = files[crc]
        for kind, damaged in (
            ("empty", b""),
            ("cut", good[:-2]),
            ("flipped head", b"\x01" + good[1:]),
            ("flipped sum", good[:-1] + b"!"),
        ):
            yield Corruption(f"{kind} checksum", path, "stale", {**files, crc: damaged})


def _replaced(files: Files, path: str, content: bytes, checksums: Checksums) -> Files:
    if checksums == "fitting":
        return {**files, **with_checksums({path: content})}
    base = _without_checksums(files) if checksums == "nowhere" else _without(files, path, also_crc=checksums == "without")
    return {**base, path: content}


def _without(files: Files, path: str, *, also_crc: bool = False) -> dict[str, bytes]:
    gone = {path, _crc(path)} if also_crc else {path}
    return {name: text for name, text in files.items() if name not in gone}


def _without_checksums(files: Files) -> dict[str, bytes]:
    return {name: text for name, text in files.items() if not name.endswith(".crc")}


def _crc(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.crc"
