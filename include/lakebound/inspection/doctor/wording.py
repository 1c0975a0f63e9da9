"""How findings are built, and how facts are written as text. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lakebound.inspection.doctor.diagnosis import RuleFinding
from lakebound.ledger.entry import TopicOffsets, high_water_marks, intervals_of
from lakebound.ledger.lost import LostRange
from lakebound.ledger.marks import NextOffsets

_SHOWN = 8


def needs_person(rule: str, sentence: str, runbook: str, **evidence: Any) -> RuleFinding:
    """Return a finding that only a person can resolve.

    Args:
        rule: The rule's name in kebab-case; it never changes.
        sentence: What is wrong, what it costs and what must be done.
        runbook: Name of the page in ``include/runbooks``, without its ending.
        **evidence: Facts that decide, by name.
    """
    return RuleFinding(rule=rule, verdict="needs_person", sentence=sentence, runbook=runbook, evidence=evidence)


def needs_approval(
    rule: str, sentence: str, runbook: str, *, loses: Iterable[LostRange] = (), replays: int = 0, **evidence: Any
) -> RuleFinding:
    """Return a finding whose repair must be approved.

    Args:
        rule: The rule's name in kebab-case; it never changes.
        sentence: What is wrong, what it costs and what must be done.
        runbook: Name of the page in ``include/runbooks``, without its ending.
        loses: Ranges of offsets that the repair gives up.
        replays: How many offsets the repair reads again.
        **evidence: Facts that decide, by name.
    """
    return RuleFinding(
        rule=rule,
        verdict="needs_approval",
        sentence=sentence,
        runbook=runbook,
        evidence=evidence,
        replays_records=replays,
        loses=tuple(loses),
    )


def repairable(rule: str, sentence: str, runbook: str, *, replays: int = 0, **evidence: Any) -> RuleFinding:
    """Return a finding that the next start repairs without a loss.

    Args:
        rule: The rule's name in kebab-case; it never changes.
        sentence: What is wrong, what it costs and what must be done.
        runbook: Name of the page in ``include/runbooks``, without its ending.
        replays: How many offsets the next start reads again.
        **evidence: Facts that decide, by name.
    """
    return RuleFinding(
        rule=rule, verdict="repairable", sentence=sentence, runbook=runbook, evidence=evidence, replays_records=replays
    )


def starting(rule: str, sentence: str, runbook: str | None = None, **evidence: Any) -> RuleFinding:
    """Return a finding that is to be looked at again.

    Args:
        rule: The rule's name in kebab-case; it never changes.
        sentence: What happens now, and what it waits for.
        runbook: Name of the page in ``include/runbooks``, without its ending; None when no page is about it.
        **evidence: Facts that decide, by name.
    """
    return RuleFinding(rule=rule, verdict="starting", sentence=sentence, runbook=runbook, evidence=evidence)


def warning(rule: str, sentence: str, runbook: str | None = None, **evidence: Any) -> RuleFinding:
    """Return a finding that costs nothing yet: the verdict stays healthy.

    Args:
        rule: The rule's name in kebab-case; it never changes.
        sentence: What was noticed, and what it can lead to.
        runbook: Name of the page in ``include/runbooks``, without its ending; None when no page is about it.
        **evidence: Facts that decide, by name.
    """
    return RuleFinding(rule=rule, verdict="healthy", sentence=sentence, runbook=runbook, evidence=evidence)


def listed(values: Mapping[str, object]) -> str:
    """Return ``a: 1, b: 2``."""
    return ", ".join(f"{name}: {value}" for name, value in values.items())


def ranges(lost: Iterable[LostRange]) -> str:
    """Return the ranges as text, only the first eight of many."""
    found = list(lost)
    shown = [f"{r.topic} partition {r.partition} [{r.start}, {r.end})" for r in found[:_SHOWN]]
    return ", ".join(shown) + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")


def offsets_of(offsets: Mapping[str, TopicOffsets]) -> dict[str, list[tuple[int, int]]]:
    """Return the intervals as evidence."""
    return {f"{topic}/{partition}": list(intervals) for topic, partition, intervals in intervals_of(offsets)}


def marks_of(coverage: Mapping[str, TopicOffsets]) -> NextOffsets:
    """Return the high-water marks as evidence."""
    return high_water_marks(coverage)
