"""A message in words: the JSON body of the webhook, the subject and the text of an e-mail. Pure."""

from __future__ import annotations

import html
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lakebound.alerts.model import EVERYTHING, Message, MessageKind, ToldAlert
from lakebound.control.runbooks import RUNBOOKS
from lakebound.control.state_text import cut_text

ID_HEADER = "X-Lakebound-Message"
"""Header of a webhook's request and of an e-mail that holds the message's id: the same when a message comes a second time."""

_MOST_IN_TITLE = 120
_HEADS = {
    MessageKind.OPENED: "",
    MessageKind.WORSENED: "worse: ",
    MessageKind.REMINDER: "still: ",
    MessageKind.RESOLVED: "resolved: ",
    MessageKind.TEST: "test: ",
    MessageKind.REPORT: "daily report: ",
}
_VERDICTS = {"doctor": "unwell", "application": "unwell", "incidents": "incident", "watch": "health_late"}
_DAGS = {
    "doctor": "checkpoint_health",
    "doctor_deadline": "checkpoint_health",
    "watch": "checkpoint_health",
    "alerts": "alerts",
    "maintenance": "maintain__{pipeline}",
    "validation": "validate__{pipeline}",
}
_ADDRESSES = ("runbook", "page", "DAG")
_FACTS_OF_RUN = ("app_id", "dag_id", "run_id", "log_url")


@dataclass(frozen=True)
class Links:
    """Where things can be looked at.

    Attributes:
        airflow: Address of Airflow's UI; None when it is not known.
        runbooks: Address of a runbook, with ``{runbook}`` for the page; None: Airflow's page of it, or the file in this
            repository where no Airflow is known.
    """

    airflow: str | None = None
    runbooks: str | None = None

    def page(self, pipeline: str) -> str | None:
        """Return Lakebound's page in Airflow where to look first: that of the pipeline, or of all."""
        return self._in_airflow("lakebound/" if pipeline == EVERYTHING else f"lakebound/pipelines/{pipeline}")

    def dag(self, pipeline: str, source: str) -> str | None:
        """Return the DAG in Airflow that found it, or that runs the pipeline."""
        dag = _DAGS.get(source, "ingest__{pipeline}" if pipeline != EVERYTHING else "alerts").format(pipeline=pipeline)
        return self._in_airflow(f"dags/{dag}")

    def runbook(self, name: str | None) -> str | None:
        """Return where the runbook is."""
        if not name:
            return None
        if self.runbooks:
            return self.runbooks.replace("{runbook}", name)
        return self._in_airflow(f"lakebound/runbooks/{name}") or f"include/runbooks/{name}.md"

    def _in_airflow(self, path: str) -> str | None:
        return f"{self.airflow.rstrip('/')}/{path}" if self.airflow else None


def body_of(message: Message, links: Links) -> dict[str, Any]:
    """Return what a webhook gets.

    The first level is about the worst alert of the message, and ``alerts`` holds each of them. ``id`` is the same when a
    message comes a second time; the ``id`` of an alert is the same from its first message to its last.
    """
    lead = message.alerts[0]
    return {
        "id": message.id,
        "kind": message.kind.value,
        "pipeline": message.pipeline,
        "verdict": verdict_of(message.kind, lead),
        "severity": lead.severity.value,
        "reason": lead.what,
        "since": lead.since,
        "done": lead.done,
        "runbook": lead.runbook,
        "runbook_link": links.runbook(lead.runbook),
        **_urgency(lead),
        "page": links.page(message.pipeline),
        "dag": links.dag(message.pipeline, lead.source),
        **{name: lead.evidence.get(name) for name in _FACTS_OF_RUN},
        "at": message.at,
        "alerts": [_one(message, told, links) for told in message.alerts],
    }


def verdict_of(kind: MessageKind, told: ToldAlert) -> str:
    """Return one word for programs: what an application did, or who found it."""
    if kind in (MessageKind.RESOLVED, MessageKind.TEST):
        return kind.value
    return told.cause if told.source == "stream" else _VERDICTS.get(told.source, told.source)


def title_of(message: Message) -> str:
    """Return one line, as the subject of an e-mail."""
    lead, rest = message.alerts[0], len(message.alerts) - 1
    everything = f"{len(lead.pipelines)} pipelines" if lead.pipelines else "all pipelines"
    about = everything if message.pipeline == EVERYTHING else message.pipeline
    more = f" (and {rest} more)" if rest else ""
    shown = cut_text(lead.what.splitlines()[0], _MOST_IN_TITLE)
    return f"[lakebound] {lead.severity.value}: {about}: {_HEADS[message.kind]}{shown}{more}"


def text_of(message: Message, links: Links) -> str:
    """Return the whole message as plain text."""
    return "\n\n".join("\n".join(f"{name}: {value}" for name, value in _lines(message, told, links)) for told in message.alerts)


def html_of(message: Message, links: Links) -> str:
    """Return the whole message as HTML; everything that comes from outside is escaped."""
    tables = []
    for told in message.alerts:
        rows = "".join(
            f"<tr><td><b>{html.escape(name)}</b></td><td>{_cell(name, value)}</td></tr>"
            for name, value in _lines(message, told, links)
        )
        tables.append(f"<table>{rows}</table>")
    return "<hr>".join(tables)


def _one(message: Message, told: ToldAlert, links: Links) -> dict[str, Any]:
    facts = told.model_dump(mode="json")
    return {
        **facts,
        "runbook_link": links.runbook(told.runbook),
        **_urgency(told),
        "page": links.page(message.pipeline),
        "dag": links.dag(message.pipeline, told.source),
    }


def _urgency(told: ToldAlert) -> dict[str, str | None]:
    """Return by when a person should act, and what happens otherwise."""
    page = RUNBOOKS.get(told.runbook or "")  # a check of your own may name a page of its own
    return {"urgency": page.when.value if page else None, "if_nobody_acts": page.otherwise if page else None}


def _lines(message: Message, told: ToldAlert, links: Links) -> list[tuple[str, str]]:
    urgency = _urgency(told) if message.kind is not MessageKind.RESOLVED else {}
    facts = ", ".join(f"{name}={value}" for name, value in told.evidence.items() if value is not None)
    found = [
        (message.kind.value, told.what),
        ("severity", told.severity.value),
        ("act", urgency.get("urgency") or ""),
        ("if nobody acts", urgency.get("if_nobody_acts") or ""),
        ("pipelines", ", ".join(told.pipelines)) if told.pipelines else ("pipeline", message.pipeline),
        ("since", datetime.fromtimestamp(told.since, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")),
        ("found by", f"{told.source} ({told.cause})"),
        ("evidence", facts),
        ("follows from it", "; ".join(told.also)),
        ("done already", told.done),
        ("runbook", links.runbook(told.runbook) or ""),
        ("page", links.page(message.pipeline) or ""),
        ("DAG", links.dag(message.pipeline, told.source) or ""),
        ("alert", told.id),
        ("message", message.id),
    ]
    return [(name, value) for name, value in found if value]


def _cell(name: str, value: str) -> str:
    """Return a value as HTML; only addresses that are Lakebound's own are links."""
    shown = html.escape(value)
    is_link = name in _ADDRESSES and value.startswith(("http://", "https://"))
    return f'<a href="{shown}">{shown}</a>' if is_link else shown.replace("\n", "<br>")
