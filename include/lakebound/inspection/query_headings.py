"""What a column without an alias is headed: the call in the query, not what Polars names it (``len``, the argument). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_TOKEN = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|--[^\n]*|/\*.*?\*/|\w+|\S|\s+""", re.DOTALL)
_CALL = re.compile(r"\w+\s*\(.*\)", re.DOTALL)


def headings(sql: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns' names, those of calls without an alias as the query has them.

    Args:
        sql: The query; where its list is not one that can be told from the text, all names stay.
        columns: As Polars names them.
    """
    items = list(_items(sql))
    if len(items) != len(columns):
        return tuple(columns)
    shown = tuple(item if _is_call(item) else name for item, name in zip(items, columns, strict=True))
    return shown if len({*shown}) == len(shown) else tuple(columns)  # JSON has each by its name


def _items(sql: str) -> Iterator[str]:
    """Yield the items of a query's list; none where the query does not begin with it."""
    tokens = [" " if one.isspace() or one.startswith(("--", "/*")) else one for one in _TOKEN.findall(sql.strip())]
    if not tokens or tokens[0].lower() != "select":
        return
    item, depth = "", 0
    for token in tokens[1:]:
        depth += (token in "([") - (token in ")]")
        if depth == 0 and token == ",":
            yield item.strip()
            item = ""
        elif depth == 0 and token.lower() == "from":
            break
        else:
            item += token
    yield item.strip()


def _is_call(item: str) -> bool:
    """Whether an item is one call and nothing after it: neither an alias nor another operand."""
    if not _CALL.fullmatch(item):
        return False
    depth = 0
    for at, token in enumerate(tokens := _TOKEN.findall(item)):
        depth += (token == "(") - (token == ")")
        if depth == 0 and token == ")":
            return at == len(tokens) - 1
    return False
