"""One cause hits fifty pipelines at night: one message when it begins, one when it becomes serious, and one at its end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lakebound.alerts.concerns import CATALOG, OUTAGE, STORE
from lakebound.alerts.disk_findings import SOURCE as DISKS
from lakebound.alerts.model import EVERYTHING, Memory, Message, MessageKind, Policy
from lakebound.alerts.reconcile import reconcile
from lakebound.alerts.routes import AlertsSpec, by_channel
from lakebound.alerts.shared_causes import things_used
from lakebound.alerts.stream_findings import event, waiting
from lakebound.control.findings import Finding, Findings, Severity
from lakebound.control.progress import Progress
from lakebound.errors import CatalogUnavailableError, DiskFullError, StoreUnavailableError
from lakebound.spec.pipeline import PipelineSpec

NAMES = tuple(f"p{number:02d}" for number in range(50))
MINUTE = 60.0
POLICY = Policy()
KAFKA = {name: {OUTAGE: ("Kafka at kafka:9092",)} for name in NAMES}
WAREHOUSE = {name: {CATALOG: ("the warehouse lake",)} for name in NAMES}
STORES = {name: {STORE: ("the store at redis:6379/0",)} for name in NAMES}
Night = Callable[[float, int], tuple[Finding, ...]]
"""What the applications of a pipeline say: minutes since the beginning, and the pipeline's number."""


def application_waits(error: str, minutes: float) -> Night:
    """The applications wait for something, each notices it within a minute and a half."""

    def found(minute: float, number: int) -> tuple[Finding, ...]:
        if not 0.03 * number <= minute < minutes + 0.02 * number:
            return ()
        progress = Progress(
            pipeline=NAMES[number],
            app_id=f"{NAMES[number]}-g0",
            state="waiting",
            waiting_for="no answer",
            waiting_error=error,
            started_at=0.0,
            updated_at=minute * MINUTE,
        )
        (one,) = waiting(NAMES[number], progress, minute * MINUTE)
        return (one.model_copy(update={"since": 0.03 * number * MINUTE}),)

    return found


def play(
    night: Night, minutes: float, used: dict, everything: Callable[[float], tuple[Finding, ...]] = lambda _: ()
) -> list[Message]:
    """A round of alerts each minute, and what it says."""
    memory, said = Memory(), list[Message]()
    for minute in range(-5, int(minutes) + 20):
        now = minute * MINUTE
        looks = [
            Findings(source="application", pipeline=name, at=now, findings=night(float(minute), number))
            for number, name in enumerate(NAMES)
        ]
        looks.append(Findings(source=DISKS, pipeline=EVERYTHING, at=now, findings=everything(float(minute))))
        memory, messages = reconcile(memory, looks, POLICY, now, used=used)
        said += messages
    return said


@pytest.mark.parametrize(
    ("error", "used"),
    [
        ("BrokerUnavailableError", KAFKA),
        (CatalogUnavailableError.__name__, WAREHOUSE),
        (StoreUnavailableError.__name__, STORES),
    ],
)
def test_a_server_that_is_away_for_two_hours_is_one_warning_one_critical_message_and_one_end(
    error: str, used: dict[str, dict[str, tuple[str, ...]]]
) -> None:
    said = play(application_waits(error, 120), 120, used)
    assert [message.kind for message in said] == [MessageKind.OPENED, MessageKind.WORSENED, MessageKind.RESOLVED]
    opened, worsened, resolved = said
    assert {message.pipeline for message in said} == {EVERYTHING}
    assert [one.alerts[0].severity for one in said] == [Severity.WARNING, Severity.CRITICAL, Severity.CRITICAL]
    assert opened.at <= 3 * MINUTE
    assert worsened.at == 15 * MINUTE
    assert 121 * MINUTE <= resolved.at <= 126 * MINUTE
    assert worsened.alerts[0].pipelines == NAMES
    assert resolved.alerts[0].pipelines == NAMES
    assert len({message.alerts[0].id for message in said}) == 1
    (thing,) = next(iter(used["p00"].values()))
    assert thing in worsened.alerts[0].what


def test_a_short_outage_wakes_nobody_up() -> None:
    said = play(application_waits("BrokerUnavailableError", 10), 10, KAFKA)
    assert [(one.kind, one.alerts[0].severity) for one in said] == [
        (MessageKind.OPENED, Severity.WARNING),
        (MessageKind.RESOLVED, Severity.WARNING),
    ]


def test_a_full_disk_is_one_critical_message_and_one_end() -> None:
    disk = Finding(cause="/data", severity=Severity.CRITICAL, what="the disk /data is full", since=0.0, runbook="disk-full")
    said = play(application_waits(DiskFullError.__name__, 120), 120, {}, lambda minute: (disk,) if 0 <= minute < 120 else ())
    assert [message.kind for message in said] == [MessageKind.OPENED, MessageKind.RESOLVED]
    assert {one.alerts[0].severity for one in said} == {Severity.CRITICAL}


def test_applications_that_an_outage_ends_are_part_of_its_one_alert() -> None:
    """Each gives up after ten minutes and is started again, which their tasks say at once."""

    def night(minute: float, number: int) -> tuple[Finding, ...]:
        found = application_waits("BrokerUnavailableError", 120)(minute, number)
        gave_up = event(NAMES[number], "failed", "no answer", runbook="broker-unavailable", now=minute * MINUTE)
        return found if not found or minute % 11 else (gave_up.model_copy(update={"since": 660.0}),)

    said = play(night, 120, KAFKA)
    assert [message.kind for message in said] == [MessageKind.OPENED, MessageKind.WORSENED, MessageKind.RESOLVED]


def test_a_pipeline_that_stays_behind_after_the_end_of_the_others_keeps_the_alert_open() -> None:
    waits = application_waits("BrokerUnavailableError", 20)

    def night(minute: float, number: int) -> tuple[Finding, ...]:
        return application_waits("BrokerUnavailableError", 40)(minute, number) if number == 7 else waits(minute, number)

    said = play(night, 60, KAFKA)
    assert [message.kind for message in said] == [MessageKind.OPENED, MessageKind.WORSENED, MessageKind.RESOLVED]
    assert said[-1].at >= 41 * MINUTE
    assert said[-1].alerts[0].evidence == {"pipelines": 50, "still_affected": 1}


def test_two_brokers_are_two_alerts_and_a_pipeline_with_a_broker_of_its_own_has_its_own() -> None:
    used = {
        name: {OUTAGE: ("Kafka at a:9092",) if number < 20 else ("Kafka at b:9092",) if number < 49 else ("Kafka at c:9092",)}
        for number, name in enumerate(NAMES)
    }
    said = [one for one in play(application_waits("BrokerUnavailableError", 10), 10, used) if one.kind is MessageKind.OPENED]
    told = {(one.pipeline, len(alert.pipelines)) for one in said for alert in one.alerts}
    assert told == {(EVERYTHING, 20), (EVERYTHING, 29), ("p49", 0)}


def test_a_refusal_of_many_pipelines_is_critical_at_once() -> None:
    def night(minute: float, number: int) -> tuple[Finding, ...]:
        refused = event(NAMES[number], "refused", "another table", runbook="table-unreadable", now=0.0)
        return (refused,) if minute >= 0 else ()

    said = play(night, 10, WAREHOUSE)
    assert [(one.kind, one.alerts[0].severity) for one in said] == [(MessageKind.OPENED, Severity.CRITICAL)]


def test_a_shared_alert_goes_to_everybody_who_is_told_of_one_of_its_pipelines() -> None:
    said = play(application_waits("BrokerUnavailableError", 10), 10, KAFKA)
    alerts = AlertsSpec.model_validate(
        {
            "channels": {name: {"webhook": {"connection": name}} for name in ("team", "others", "pager")},
            "routes": [
                {"severity": "warning", "pipelines": ["p1*"], "to": ["team"]},
                {"severity": "warning", "pipelines": ["q*"], "to": ["others"]},
                {"severity": "critical", "to": ["pager"]},
            ],
        }
    )
    assert set(by_channel(said[0], alerts)) == {"team"}


def test_what_a_pipeline_uses_is_taken_from_its_yaml() -> None:
    spec = PipelineSpec.model_validate(
        {
            "pipeline": "orders",
            "topics": ["orders"],
            "connection": {"bootstrap_servers": "kafka:9092"},
            "value": {"format": "bytes"},
            "freshness": "1s",
            "tables": [{"format": "delta", "name": "sales.orders"}],
        }
    )
    used = things_used(spec, "/home")
    assert used[OUTAGE] == ("Kafka at kafka:9092",)
    assert used[CATALOG] == (f"the warehouse {spec.warehouse}",)
