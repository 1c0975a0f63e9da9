"""Which keys and common prefixes one page of a list holds."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    """A page of a list.

    Args:
        keys: The keys of this page, sorted.
        common_prefixes: What keys with the delimiter after the prefix are rolled up to, sorted.
        last: The greatest key or common prefix of the page, if another page follows.
    """

    keys: tuple[str, ...]
    common_prefixes: tuple[str, ...]
    last: str | None


def list_page(keys: Sequence[str], prefix: str, delimiter: str, after: str, most: int) -> Page:
    """Return the page that begins behind ``after``.

    Args:
        keys: All keys, sorted by code point, which is the order of their UTF-8 bytes.
        prefix: Only keys that begin so.
        delimiter: Keys that hold it behind the prefix are rolled up; empty for none.
        after: A key, or a common prefix of an earlier page; empty for the first page.
        most: How many keys and common prefixes a page may hold.
    """
    found: list[str] = []
    rolled_up: list[str] = []
    last = ""
    at = max(bisect_left(keys, prefix), bisect_right(keys, after) if after else 0)
    while at < len(keys) and keys[at].startswith(prefix):
        key = keys[at]
        cut = key.find(delimiter, len(prefix)) if delimiter else -1
        entry = key if cut < 0 else key[: cut + len(delimiter)]
        known = cut >= 0 and entry == after
        if not known and len(found) + len(rolled_up) == most:
            return Page(tuple(found), tuple(rolled_up), last if most else None)
        if cut < 0:
            found.append(key)
            at += 1
        else:
            if not known:
                rolled_up.append(entry)
            at = bisect_left(keys, _behind(entry))
        last = entry
    return Page(tuple(found), tuple(rolled_up), None)


def _behind(prefix: str) -> str:
    """Return the least text that is greater than every text with this prefix."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)
