"""A broker is away for 30 minutes: everybody complains, and people get a warning, a critical message, and the end."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from lakebound.alerts.doctor_findings import doctor_findings
from lakebound.alerts.incident_findings import incident_findings
from lakebound.alerts.model import Memory, Message, MessageKind, Policy
from lakebound.alerts.objectives import ObjectiveFacts, objective_findings
from lakebound.alerts.reconcile import reconcile
from lakebound.alerts.stream_findings import StreamFacts, event, still_wrong, waiting, with_event
from lakebound.control.desired import Desired
from lakebound.control.findings import Finding, Findings, found_before
from lakebound.control.incidents import Incident
from lakebound.control.progress import Progress
from lakebound.errors import BrokerUnavailableError
from lakebound.inspection.doctor.diagnosis import Diagnosis, RuleFinding
from lakebound.spec.objectives import ObjectivesSpec

GONE, BACK, CAUGHT_UP = 600.0, 2400.0, 2700.0
GIVES_UP_SECONDS, STARTS_SECONDS, DOCTOR_SECONDS = 600.0, 45.0, 300.0
OBJECTIVES = ObjectivesSpec(freshness_p99_seconds=5, lag_seconds=60)


@dataclass
class Outage:
    """The stream, its doctor and its objectives through the outage, a minute at a time."""

    pipeline: str = "orders"
    doctor_phase_seconds: int = 0
    leaves_incident: bool = False
    memory: Memory = field(default_factory=Memory)
    files: dict[str, Findings] = field(default_factory=dict)
    said: list[Message] = field(default_factory=list)
    app: int = 1
    app_started_at: float = -3600.0
    failures: int = 0

    def progress(self, now: float) -> Progress:
        """What the application says: it waits for Kafka, gives up after ten minutes, and is started again."""
        away = GONE <= now < BACK
        newest = now if now < GONE else GONE if now < BACK else GONE + (now - BACK) * (CAUGHT_UP - GONE) / (CAUGHT_UP - BACK)
        newest = min(newest, now)
        is_up = now - self.app_started_at > STARTS_SECONDS
        return Progress(
            pipeline=self.pipeline,
            app_id=f"app-{self.app}",
            state="waiting" if away and is_up else "running" if is_up else "starting",
            waiting_for="no answer from Kafka" if away and is_up else None,
            started_at=self.app_started_at,
            updated_at=now,
            lag_records=0 if now < GONE or now >= CAUGHT_UP else 10_000,
            newest_record_ms=int(newest * 1000),
            last_commit_at=now if not away and is_up else GONE,
            freshness_p99_seconds=0.4 if now < BACK or now >= CAUGHT_UP + 300 else 1700.0,
        )

    def minute(self, now: float) -> None:
        """One round of the DAG ``alerts``; before it, what happened since the one before."""
        progress = self.progress(now)
        if GONE <= now < BACK and now - max(self.app_started_at, GONE) > GIVES_UP_SECONDS + STARTS_SECONDS:
            reason = str(BrokerUnavailableError("127.0.0.1:1", "timed out"))
            found = event(self.pipeline, "failed", reason, runbook="broker-unavailable", now=now)
            self.write("stream", now, with_event(self.files["stream"].findings, found))
            self.app, self.app_started_at, self.failures = self.app + 1, now + 5, self.failures + 1
            self.round(now)
        before = self.files.get("stream")
        facts = StreamFacts(Desired(), progress)
        self.write("stream", now, still_wrong(before.findings if before else (), facts, now))
        self.write("application", now, waiting(self.pipeline, progress, now))
        self.write("objectives", now, objective_findings(OBJECTIVES, ObjectiveFacts(progress=progress), now))
        if self.leaves_incident:
            looked = self.files.get("incidents")
            self.write("incidents", now, incident_findings(self.incidents(now), looked.at if looked else None, now))
        if (now + self.doctor_phase_seconds) % DOCTOR_SECONDS == 0:
            self.write("doctor", now, doctor_findings(self.diagnosis(now), now))
        self.round(now)

    def incidents(self, now: float) -> list[Incident]:
        """What the first start after the outage writes down of the application that gave up."""
        at = BACK + 20
        return [Incident(id="i-1", pipeline=self.pipeline, kind="unclean_end", at=at, what="app-1 ended")] if now >= at else []

    def diagnosis(self, now: float) -> Diagnosis:
        """What the doctor finds: Kafka does not answer, then a stream that is behind, and a start that is not over."""
        if GONE <= now < BACK:
            rules = [
                RuleFinding(rule="broker-unavailable", verdict="starting", sentence="away", runbook="broker-unavailable"),
                RuleFinding(rule="application-dead", verdict="starting", sentence="dead", runbook="application-dead"),
            ]
        elif BACK <= now < CAUGHT_UP:
            rules = [
                RuleFinding(rule="application-dead", verdict="repairable", sentence="dead", runbook="application-dead"),
                RuleFinding(rule="lag", verdict="healthy", sentence="behind", runbook="lag"),
            ]
        else:
            rules = []
        return Diagnosis(subject=self.pipeline, findings=tuple(rules))

    def write(self, source: str, now: float, found: tuple[Finding, ...]) -> None:
        kept = found_before(self.files.get(source), found)
        self.files[source] = Findings(source=source, pipeline=self.pipeline, at=now, findings=kept)

    def round(self, now: float) -> None:
        self.memory, said = reconcile(self.memory, self.files.values(), Policy(), now)
        self.said += said


@pytest.mark.parametrize("leaves_incident", [False, True])
@pytest.mark.parametrize("phase", range(0, 300, 60))
def test_a_broker_that_is_away_for_half_an_hour_is_a_warning_a_critical_message_and_its_end(
    phase: int, leaves_incident: bool
) -> None:
    outage = Outage(doctor_phase_seconds=phase, leaves_incident=leaves_incident)
    for now in range(0, 3 * 3600, 60):
        outage.minute(float(now))
    assert outage.failures >= 2, "the application gave up, and was started again"
    assert [message.kind for message in outage.said] == [MessageKind.OPENED, MessageKind.WORSENED, MessageKind.RESOLVED]
    opened, worsened, resolved = outage.said
    assert GONE <= opened.at <= GONE + 180
    assert opened.alerts[0].severity == "warning"
    assert GONE + Policy().critical_after_seconds <= worsened.at <= GONE + Policy().critical_after_seconds + 360
    assert worsened.alerts[0].severity == "critical"
    assert BACK <= resolved.at <= CAUGHT_UP + 600
    assert opened.alerts[0].id == resolved.alerts[0].id
    assert opened.alerts[0].runbook == "broker-unavailable"


def test_a_lag_without_an_outage_is_told() -> None:
    outage = Outage()
    for now in range(0, 600, 60):
        outage.write(
            "objectives", float(now), (Finding(cause="lag", severity="warning", what="late", since=0.0, runbook="lag"),)
        )
        outage.round(float(now))
    assert [message.kind for message in outage.said] == [MessageKind.OPENED]
