"""The JSON of an Iceberg metadata file, as its writer left it: plain or compressed."""

from __future__ import annotations

import gzip
from typing import Any

from pydantic_core import from_json, to_json

Body = dict[str, Any]
"""The JSON of a metadata file (https://iceberg.apache.org/spec/#table-metadata-fields)."""

_GZIP = b"\x1f\x8b"


def parse_body(content: bytes) -> Body:
    """Return the JSON in a metadata file's content.

    Raises:
        ValueError: It is no JSON.
        OSError: It is compressed, and damaged.
    """
    body: Body = from_json(gzip.decompress(content) if content.startswith(_GZIP) else content)
    return body


def body_bytes(body: Body, like: bytes) -> bytes:
    """Return the content of a metadata file, compressed where the one that it replaces is.

    Args:
        body: Its JSON.
        like: Content of the file that it replaces.
    """
    return gzip.compress(to_json(body)) if like.startswith(_GZIP) else to_json(body)
