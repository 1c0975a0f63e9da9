"""One object as it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class StoredObject:
    """An object, or a part of an upload; never changed, only replaced.

    Args:
        key: The key, decoded.
        data: The whole body.
        etag: Without quotes.
        modified: When it was written.
        headers: What a reader gets back (content type, metadata of the user).
        checksums: Header → value, as the writer gave them.
    """

    key: str
    data: bytes
    etag: str
    modified: datetime
    headers: Mapping[str, str]
    checksums: Mapping[str, str]

    def matches(self, wanted: str) -> bool:
        """Say whether a list of ETags, quoted or not, or ``*``, names this object."""
        return wanted.strip() == "*" or self.etag in {one.strip().removeprefix("W/").strip('"') for one in wanted.split(",")}
