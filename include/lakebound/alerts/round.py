"""One round of alerts: what every source says now becomes messages, and these are sent. Safe to run from anywhere, at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from lakebound.alerts.disk_findings import disk_findings
from lakebound.alerts.load import load_alerts_or_default
from lakebound.alerts.model import EVERYTHING, Memory, Message, MessageKind, ToldAlert
from lakebound.alerts.outbox import Delivered, Send, deliver
from lakebound.alerts.reconcile import reconcile
from lakebound.alerts.routes import AlertsSpec, by_channel
from lakebound.alerts.shared_causes import Used, things_used
from lakebound.alerts.store import AlertState, AlertStore
from lakebound.alerts.unwritable import is_turn_without_memory, look_at_state, told_at_once
from lakebound.control.applications import pipelines_with_state
from lakebound.control.findings import Finding, Findings, Severity, read_sources
from lakebound.control.folder import ControlFolder
from lakebound.control.old_files import Removed, remove_old_files
from lakebound.inspection.disk_look import look_at_disks
from lakebound.settings import Settings
from lakebound.spec.load import LoadedPipelines, load_pipelines
from lakebound.spec.state_store import installed_state_store

ALERTS, WATCH = "alerts", "watch"
_TIDY_SECONDS = 3600.0


@dataclass(frozen=True)
class RoundReport:
    """What a round did.

    Attributes:
        said: What is new.
        delivered: What was sent.
        problems: What is wrong with ``alerts.yaml`` or with files of findings, and which disks do not answer.
        removed: Which old files of the state were removed, once an hour.
    """

    said: tuple[Message, ...] = ()
    delivered: Delivered = field(default_factory=Delivered)
    problems: tuple[str, ...] = ()
    removed: Removed = field(default_factory=Removed)


def run_round(settings: Settings, send: Send, clock: Callable[[], float] = time.time) -> RoundReport:
    """Reconcile what was found with what was said, write down what is to be said, and send it.

    A disk that takes no file keeps nobody from being told: that is an alert itself (``lakebound.alerts.unwritable``).

    Args:
        settings: Of this machine.
        send: Delivers one message by one channel.
        clock: Epoch seconds.
    """
    alerts, mistakes = load_alerts_or_default(settings)
    store = AlertStore(settings.home)
    with store.changing():
        state, now = store.read(), clock()
        loaded = load_pipelines(settings)
        found, problems = read_everything(settings, loaded)
        disks, silent = look_at_disks(settings, alerts.disks, now, remember=True)
        found += [_of_this_file(mistakes, state.memory, now), disk_findings(disks, state.memory, now)]
        used = {name: things_used(spec, str(settings.home)) for name, spec in loaded.specs.items()}
        retired = _retired(state, loaded, settings)
        said = _write_down(store, state, found, _Round(alerts, now, used, retired))
    problems = [*mistakes, *problems, *silent]
    if said is None:
        return RoundReport(problems=tuple(problems))
    delivered = deliver(store, alerts, send, clock)
    return RoundReport(said, delivered, tuple(problems), _tidy_up(settings, store, now))


@dataclass(frozen=True)
class _Round:
    """What decides on the messages of one round, beside the findings.

    Attributes:
        alerts: Channels, routes and times.
        now: Epoch seconds.
        used: What each pipeline uses that others may use, too.
        retired: Pipelines that no file declares any more.
    """

    alerts: AlertsSpec
    now: float
    used: Used
    retired: Collection[str]


def _write_down(store: AlertStore, state: AlertState, found: Sequence[Findings], this: _Round) -> tuple[Message, ...] | None:
    """Queue what is to be said, and return it; None where nobody would know later that it was said, and it is not the time."""
    home, memory, now = store.home, state.memory, this.now
    after, said = _next_state(state, [*found, look_at_state(home, None, memory, now)], this)
    kept = store.write(after)
    if kept.problem is None:
        return said
    policy = this.alerts.policy if kept.is_known_later else told_at_once(this.alerts.policy)
    this = replace(this, alerts=this.alerts.model_copy(update={"policy": policy}))
    after, said = _next_state(state, [*found, look_at_state(home, kept.problem, memory, now)], this)
    is_told = kept.is_known_later or is_turn_without_memory(now)
    store.write(after if is_told else state)
    return said if is_told else None


def _next_state(state: AlertState, found: Iterable[Findings], this: _Round) -> tuple[AlertState, tuple[Message, ...]]:
    """Return the state in which everything that is to be said is queued, and what that is."""
    memory, said = reconcile(state.memory, found, this.alerts.policy, this.now, used=this.used, retired=this.retired)
    after = state.model_copy(update={"memory": memory, "round_at": this.now})
    for message in said:
        for channel, own in by_channel(message, this.alerts).items():
            after = after.queued(channel, own)
    return after, said


def read_everything(settings: Settings, loaded: LoadedPipelines) -> tuple[list[Findings], list[str]]:
    """Return what every source last said of every declared pipeline; a file that cannot be read hides no other."""
    declared = {*loaded.specs, *(path.stem for path in loaded.mistakes)}
    controls = [control for control in pipelines_with_state(settings) if control.pipeline in declared]
    found: list[Findings] = []
    problems: list[str] = []
    for control in (*controls, watch_folder(settings)):
        own, unreadable = read_sources(control)
        found += own
        problems += unreadable
    return found, problems


def watch_folder(settings: Settings) -> ControlFolder:
    """Return where findings lie that are about no single pipeline; in shared state, too, it is not among the pipelines."""
    shared = installed_state_store()
    if shared is not None:
        shared = shared.model_copy(update={"location": f"{shared.location}/{ALERTS}"})
    return ControlFolder(settings.home / ALERTS, EVERYTHING, shared)


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


def _tidy_up(settings: Settings, store: AlertStore, now: float) -> Removed:
    """Remove old files of the state where nobody has done so for an hour."""
    with store.changing():
        state = store.read()
        if 0 <= now - state.tidied_at < _TIDY_SECONDS:
            return Removed()
        store.write(state.model_copy(update={"tidied_at": now}))
    return remove_old_files(settings, now)


def _of_this_file(problems: Iterable[str], memory: Memory, now: float) -> Findings:
    lines = list(problems)
    found: tuple[Finding, ...] = ()
    if lines:
        since = next((alert.since for alert in memory.alerts if alert.key == (EVERYTHING, f"{ALERTS}:routes")), now)
        what = f"alerts.yaml is wrong, so alerts go only to the default webhook: {lines[0]}"
        found = (Finding(cause="routes", severity=Severity.CRITICAL, what=what, since=since, runbook="alerts-file"),)
    return Findings(source=ALERTS, pipeline=EVERYTHING, at=now, findings=found)


def _retired(state: AlertState, loaded: LoadedPipelines, settings: Settings) -> set[str]:
    """Return the pipelines with alerts that no file declares any more; none while the folder itself is not there."""
    if not settings.pipelines.is_dir():
        return set()
    declared = {EVERYTHING, *loaded.specs, *(path.stem for path in loaded.mistakes)}
    return {alert.pipeline for alert in state.memory.alerts} - declared
