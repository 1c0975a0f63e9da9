"""The newest records of the quarantine, by reason, as a piece of HTML. They hold values of records: every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from lakebound.control.quarantine_samples import QuarantineSample
from lakebound_airflow.page.html_tables import line, moment, table, told


def samples_fragment(
    samples: Sequence[QuarantineSample], kept: int, problems: Iterable[str] = (), *, topic: str | None = None
) -> str:
    """Return the samples as a table, those of the reason that came last first.

    Args:
        samples: Newest first.
        kept: How many of each reason the pipeline's YAML asks for.
        problems: What could not be read.
        topic: Where bad records are in real time, of which no samples are taken; None for others.
    """
    unread = told(problems)
    if topic is not None and not samples:
        return (
            f'{unread}<p class="quiet">No samples are kept with <code>freshness: real_time</code>; bad records are in the '
            f"topic {escape(topic)}.</p>"
        )
    if not kept:
        return (
            f'{unread}<p class="quiet">No samples are kept, so no record value leaves the tables. To see some here, set '
            "<code>quarantine_samples</code> in the pipeline's YAML; lakebound quarantine shows them on the command line.</p>"
        )
    if not samples:
        return (
            f'{unread}<p class="quiet">No record went to quarantine in the last seven days (or since samples were switched '
            "on).</p>"
        )
    reasons = list(dict.fromkeys(one.reason for one in samples))
    ordered = (one for reason in reasons for one in samples if one.reason == reason)
    caption = (
        f"The newest records of each reason, at most {kept}, as they went to quarantine; values are cut, and bytes escaped. "
        "Some may have been released since. All of them, and which are open: lakebound quarantine."
    )
    heads = ("Reason", "Where", "To quarantine", "Error", "Key", "Headers", "#Bytes", "Value")
    return f'{unread}<div class="samples">{table(caption, heads, map(_line, ordered))}</div>'


def _line(one: QuarantineSample) -> str:
    return line(
        escape(one.reason),
        escape(f"{one.topic}/{one.partition} {one.offset}"),
        moment(one.at),
        escape(one.error or "–"),
        _code(one.key),
        _code(one.headers),
        one.value_bytes,
        _code(one.value),
    )


def _code(text: str | None) -> str:
    return "–" if text is None else f"<code>{escape(text)}</code>"
