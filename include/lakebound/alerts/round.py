"""One round of alerts: what every source says now becomes messages, and these are sent. Safe to run from anywhere, at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from lakebound.alerts.load import InvalidAlertsError, alerts_file, load_alerts
from lakebound.alerts.model import EVERYTHING, Memory, Message, MessageKind, ToldAlert
from lakebound.alerts.outbox import Delivered, Send, deliver
from lakebound.alerts.reconcile import reconcile
from lakebound.alerts.routes import DEFAULT_ALERTS, AlertsSpec, by_channel
from lakebound.alerts.store import AlertState, AlertStore
from lakebound.control.applications import pipelines_with_state
from lakebound.control.findings import Finding, Findings, Severity, read_source, write_findings
from lakebound.control.folder import ControlFolder, read_json
from lakebound.settings import Settings
from lakebound.spec.load import LoadedPipelines, load_pipelines

ALERTS, WATCH = "alerts", "watch"


@dataclass(frozen=True)
class RoundReport:
    """What a round said and sent; ``problems`` is what is wrong with ``alerts.yaml`` or with files of findings."""

    said: tuple[Message, ...] = ()
    delivered: Delivered = field(default_factory=Delivered)
    problems: tuple[str, ...] = ()


def run_round(settings: Settings, send: Send, clock: Callable[[], float] = time.time) -> RoundReport:
    """Reconcile what was found with what was said, write down what is to be said, and send it.

    Args:
        settings: Of this machine.
        send: Delivers one message by one channel.
        clock: Epoch seconds.
    """
    alerts, problems = _routes(settings)
    store = AlertStore(settings.home)
    with store.changing():
        state, now = store.read(), clock()
        loaded = load_pipelines(settings)
        found, unreadable = read_everything(settings, loaded)
        found.append(_of_this_file(problems, state.memory, now))
        retired = _retired(state, loaded, settings)
        memory, said = reconcile(state.memory, found, alerts.policy, now, retired=retired)
        state = state.model_copy(update={"memory": memory, "round_at": now})
        for message in said:
            for channel, own in by_channel(message, alerts).items():
                state = state.queued(channel, own)
        store.write(state)
    return RoundReport(said, deliver(store, alerts, send, clock), (*problems, *unreadable))


def read_everything(settings: Settings, loaded: LoadedPipelines) -> tuple[list[Findings], list[str]]:
    """Return what every source last said of every declared pipeline; a file that cannot be read hides no other."""
    declared = {*loaded.specs, *(path.stem for path in loaded.mistakes)}
    controls = [control for control in pipelines_with_state(settings) if control.pipeline in declared]
    found: list[Findings] = []
    problems: list[str] = []
    for control in (*controls, watch_folder(settings)):
        for file in sorted(control.findings.glob("*.json")):
            try:
                found.append(Findings.model_validate(read_json(file)))
            except (OSError, ValueError) as exc:
                problems.append(f"{file} cannot be read: {type(exc).__name__}; what it named before stands")
    return found, problems


def watch_folder(settings: Settings) -> ControlFolder:
    """Return where findings lie that are about no single pipeline."""
    return ControlFolder(settings.home / ALERTS, EVERYTHING)


def note_health_late(settings: Settings, minutes: float) -> None:
    """Record that the pipelines were not checked for this time; the record stays until they are.

    Airflow counts a run that failed as late, too: where another one has looked since, nothing is.
    """
    now = time.time()
    if _newest_look(settings) > now - minutes * 60:
        return
    found = Finding(
        cause="health-late",
        severity=Severity.CRITICAL,
        what=f"checkpoint_health was not done after {minutes:g} minutes: nobody watches the pipelines",
        since=now,
        evidence={"dag_id": "checkpoint_health"},
        runbook="health-late",
    )
    write_findings(watch_folder(settings), WATCH, [found])


def look_whether_health_is_late(settings: Settings) -> None:
    """Take the word back once the doctor has looked again."""
    folder = watch_folder(settings)
    before, newest = read_source(folder, WATCH), _newest_look(settings)
    if before is None:
        return
    write_findings(folder, WATCH, [finding for finding in before.findings if finding.since >= newest])


def _newest_look(settings: Settings) -> float:
    """Return when the doctor last looked at any pipeline, in epoch seconds."""
    looks = [read_source(control, "doctor") for control in pipelines_with_state(settings)]
    return max((look.at for look in looks if look is not None), default=0.0)


def message_of_test(pipeline: str, now: float) -> Message:
    """Return a message that says that it is a test."""
    told = ToldAlert(
        id=f"{pipeline}/test/{round(now * 1000)}",
        source=ALERTS,
        cause="test",
        severity=Severity.INFO,
        what=f"a test of the alerts of {pipeline}: nothing is wrong",
        since=now,
        done="nothing had to be done",
    )
    return Message(id=f"{pipeline}-test-{round(now * 1000)}", kind=MessageKind.TEST, pipeline=pipeline, at=now, alerts=(told,))


def _routes(settings: Settings) -> tuple[AlertsSpec, list[str]]:
    """Return the routes; where the file is wrong the default, by which its mistakes are told."""
    try:
        return load_alerts(alerts_file(settings)), []
    except InvalidAlertsError as exc:
        return DEFAULT_ALERTS, exc.problems


def _of_this_file(problems: Iterable[str], memory: Memory, now: float) -> Findings:
    lines = list(problems)
    found: tuple[Finding, ...] = ()
    if lines:
        since = next((alert.since for alert in memory.alerts if alert.key == (EVERYTHING, f"{ALERTS}:routes")), now)
        what = f"alerts.yaml is wrong, so alerts go to the default webhook alone: {lines[0]}"
        found = (Finding(cause="routes", severity=Severity.CRITICAL, what=what, since=since, runbook="alerts-file"),)
    return Findings(source=ALERTS, pipeline=EVERYTHING, at=now, findings=found)


def _retired(state: AlertState, loaded: LoadedPipelines, settings: Settings) -> set[str]:
    """Return the pipelines with alerts that no file declares any more; none while the folder itself is not there."""
    if not settings.pipelines.is_dir():
        return set()
    declared = {EVERYTHING, *loaded.specs, *(path.stem for path in loaded.mistakes)}
    return {alert.pipeline for alert in state.memory.alerts} - declared
