"""Which names of columns are one name to those who read tables. Pure."""

from __future__ import annotations


def as_compared(name: str) -> str:
    """Return a name as Spark compares it: upper and lower case of each character by itself are one (``equalsIgnoreCase``).

    Delta Lake and Iceberg write names in lower case where they compare them, which tells more names apart. ``straße`` and
    ``strasse`` are two columns to all of them.
    """
    return "".join(map(_character, name))


def _character(char: str) -> str:
    upper = char.upper()
    return (upper if len(upper) == 1 else char).lower()[0]
