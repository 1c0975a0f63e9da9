"""Hadoop's checksum files (``.NAME.crc`` beside NAME), which Spark leaves on local file systems. Pure.

Spark 4.1 writes them and never compares them: it goes on with whatever a damaged file says.
"""

from __future__ import annotations

import struct
import zlib
from typing import Literal

Checksum = Literal["matches", "differs", "missing"]
"""missing: there is none, or its head is not that of a checksum file."""

_HEAD = struct.pack(">4si", b"crc\0", 512)
_CHUNK_BYTES = 512


def checksum_file(content: bytes) -> bytes:
    """Return what Hadoop writes beside a file of this content."""
    chunks = (content[start : start + _CHUNK_BYTES] for start in range(0, len(content), _CHUNK_BYTES))
    return _HEAD + b"".join(struct.pack(">I", zlib.crc32(chunk)) for chunk in chunks)


def checksum_of(content: bytes, crc: bytes | None) -> Checksum:
    """Compare a file with its checksum file (None when there is none)."""
    if crc is None or crc[: len(_HEAD)] != _HEAD:
        return "missing"
    return "matches" if crc == checksum_file(content) else "differs"
