"""The charts of a pipeline as a piece of HTML, which the page puts into itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape

from lakebound_airflow.page.charts.model import Chart, Mark, TimeRange, gathered
from lakebound_airflow.page.charts.periods import PERIODS, Period
from lakebound_airflow.page.charts.reading import History
from lakebound_airflow.page.charts.svg import drawn
from lakebound_airflow.page.charts.values import charts_of
from lakebound_airflow.page.html_tables import moment, told

_SHOWN_IN_THE_LIST = 100
_MARK_SLOTS = 48


def charts_fragment(history: History, period: Period, now: float) -> str:
    """Return the links to the periods, the charts, and what is marked on them as a list.

    Args:
        history: What is known of the period.
        period: It ends now.
        now: Epoch seconds.
    """
    times = period.times(now)
    span = TimeRange(since=now - period.seconds, until=now, times=times)
    charts = charts_of(history.buckets, history.readings, times, now)
    marks = gathered(history.marks, period.seconds / _MARK_SLOTS)
    body = "".join(_figure(chart, span, marks) for chart in charts)
    nothing = '<p class="quiet">Nothing is recorded of this period.</p>'
    return f'{_links(period)}{told(history.problems)}<div class="charts">{body or nothing}</div>{_listed(history.marks)}'


def _links(chosen: Period) -> str:
    links = (
        f'<a href="?period={period.name}"{" aria-current=true" if period == chosen else ""}>{period.title}</a>'
        for period in PERIODS
    )
    return f'<nav class="periods" aria-label="Period">{"".join(links)}</nav>'


def _figure(chart: Chart, span: TimeRange, marks: Iterable[Mark]) -> str:
    names = "".join(f'<li class="s{number}">{escape(line.name)}</li>' for number, line in enumerate(chart.lines))
    return (
        f'<figure id="chart-{escape(chart.id, quote=True)}"><figcaption>{escape(chart.title)}</figcaption>'
        f'{drawn(chart, span, marks)}<ul class="legend">{names}</ul><p class="readout quiet"></p>'
        f"<details><summary>Values as a table</summary></details></figure>"
    )


def _listed(marks: Sequence[Mark]) -> str:
    """Return what is marked as a list, the newest first."""
    if not marks:
        return ""
    counts = Counter(mark.kind for mark in marks)
    said = ", ".join(f"{counts[kind]} × {kind}" for kind in sorted(counts))
    lines = "".join(
        f'<li class="{mark.kind}"><time>{moment(mark.at)}</time> {escape(mark.what)}</li>'
        for mark in list(reversed(marks))[:_SHOWN_IN_THE_LIST]
    )
    return f'<details id="marked"><summary>Marked on the charts: {said}</summary><ul class="marks">{lines}</ul></details>'
