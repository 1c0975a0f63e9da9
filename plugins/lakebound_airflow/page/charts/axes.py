"""Ticks of axes, and numbers as people read them. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from lakebound_airflow.page.charts.model import Unit

_STEPS_SECONDS = (
    1,
    2,
    5,
    10,
    15,
    30,
    60,
    120,
    300,
    600,
    900,
    1800,
    3600,
    7200,
    10_800,
    21_600,
    43_200,
    86_400,
    172_800,
    432_000,
)
_TIME_STEPS = tuple(step for step in _STEPS_SECONDS if step >= 60)
_DAY = 86_400


def value_ticks(highest: float, unit: Unit, most: int = 4) -> list[float]:
    """Return round values from 0 to the first one that is not below ``highest``; at most ``most`` steps."""
    step = _round_step(max(highest, 1e-3) / most, unit)
    count = max(1, math.ceil(highest / step - 1e-9))
    return [step * number for number in range(count + 1)]


def time_ticks(since: float, until: float, most: int = 7) -> list[int]:
    """Return round moments (UTC) between two, in epoch seconds."""
    step = next((one for one in _TIME_STEPS if (until - since) / one <= most), _TIME_STEPS[-1])
    return list(range(math.ceil(since / step) * step, int(until) + 1, step))


def moment_text(at: float, seconds: float) -> str:
    """Return a moment for an axis over so many seconds, in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M" if seconds <= _DAY else "%d %b")


def value_text(value: float, unit: Unit) -> str:
    """Return a value with its unit."""
    if unit == "seconds":
        return _duration(value)
    if unit == "share":
        return f"{100 * value:.3g} %"
    if unit == "bytes":
        return _scaled(value, 1024, ("B", "KiB", "MiB", "GiB", "TiB", "PiB"))
    text = _scaled(value, 1000, ("", "k", "M", "G", "T"))
    return f"{text}/s" if unit == "per_second" else text


def _duration(seconds: float) -> str:
    for limit, divisor, word in ((1, 0.001, "ms"), (120, 1, "s"), (7200, 60, "min"), (2 * _DAY, 3600, "h")):
        if seconds < limit:
            return f"{seconds / divisor:.3g} {word}" if seconds else "0"
    return f"{seconds / _DAY:.3g} d"


def _scaled(value: float, base: int, words: Sequence[str]) -> str:
    power = 0
    while value >= base and power + 1 < len(words):
        value, power = value / base, power + 1
    return f"{value:.4g} {words[power]}".strip()


def _round_step(least: float, unit: Unit) -> float:
    if unit == "seconds" and least >= 1:
        found = next((step for step in _STEPS_SECONDS if step >= least), None)
        if found is not None:
            return float(found)
    if unit == "bytes" and least >= 1:
        base = 1024.0 ** int(math.log(least, 1024))
        return base * _decimal_step(least / base)
    if unit in ("count", "bytes"):
        least = max(least, 1.0)
    return _decimal_step(least)


def _decimal_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * one for one in (1, 2, 5, 10) if power * one >= least * (1 - 1e-9))
