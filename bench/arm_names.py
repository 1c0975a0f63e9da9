"""The names of the arms, and the work that each is given: which transform, or which records. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast, get_args

Work = Literal["encode", "enrich", "dirty", "avro", "protobuf", "plain"]
WORKS: tuple[Work, ...] = get_args(Work)
"""In the order of the page."""

_WORDS = {
    "lakebound": "lakebound:TABLES:FRESHNESS[:encode|:enrich|:dirty|:avro|:protobuf][:spark]",
    "flink": "flink:INTERVAL[:encode|:enrich|:dirty|:avro]",
    "connect": "connect:INTERVAL[:dirty]",
    "spark": "spark:FORMAT[:tuned]",
}
_PLACES = {"lakebound": 2, "flink": 1, "connect": 1, "spark": 1}
_WORKS_OF: dict[str, tuple[Work, ...]] = {
    "lakebound": WORKS,
    "flink": ("encode", "enrich", "dirty", "avro", "plain"),
    "connect": ("dirty", "plain"),
    "spark": ("plain",),
}


@dataclass(frozen=True)
class ArmName:
    """What a name says.

    Attributes:
        kind: Who lands the records.
        words: Tables and freshness, interval, or format.
        work: What is done with the records.
        mark: ``spark`` where Lakebound leaves reading to Spark, ``tuned`` of plain Spark, or nothing.
    """

    kind: str
    words: tuple[str, ...]
    work: Work = "plain"
    mark: str = ""


def parse(arm: str) -> ArmName:
    """Return what an arm's name says.

    Raises:
        SystemExit: There is no such arm.
    """
    kind, *rest = arm.split(":")
    if kind not in _WORDS:
        raise SystemExit(f"no arm '{arm}': its first word is one of {', '.join(_WORDS)}")
    words, more = tuple(rest[: _PLACES[kind]]), rest[_PLACES[kind] :]
    mark = {"lakebound": "spark", "spark": "tuned"}.get(kind)
    has_mark = bool(more) and more[-1] == mark
    works = more[:-1] if has_mark else more
    named = works[0] if works else "plain"
    is_whole = len(words) == _PLACES[kind] and all(words) and len(works) <= 1
    if not is_whole or works == ["plain"] or named not in _WORKS_OF[kind]:
        raise SystemExit(f"no arm '{arm}': its form is {_WORDS[kind]}")
    return ArmName(kind, words, cast("Work", named), more[-1] if has_mark else "")
