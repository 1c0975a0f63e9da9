"""Texts in a JAAS configuration, as Kafka's Java clients and brokers read it. Pure."""

from __future__ import annotations

_ESCAPED = {'"': '\\"', "\\": "\\\\"}


def jaas_quoted(text: str) -> str:
    """Return a text in quotes.

    Kafka reads it with Java's ``StreamTokenizer``: it knows octal escapes and none of Unicode's, so that other characters stand
    as they are, and a line's end in quotes would end the text.
    """
    inner = "".join(_ESCAPED.get(one) or (f"\\{ord(one):03o}" if ord(one) < 32 else one) for one in text)
    return f'"{inner}"'
