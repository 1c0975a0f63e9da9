"""From what every source finds now, and what was said before, to what is to be said. Pure: the clock is an argument.

An alert is told when its finding has stood for a while and follows from nothing else, said again after a set time, said to
be worse once, and said to be over when every source that named it has looked again and names it no more.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from lakebound.alerts.concerns import (
    IMMEDIATE,
    LOOKS_AT_A_START,
    WEEKLY,
    concern_of,
    follows,
    is_event_of_outage,
    is_result,
    is_symptom,
    is_waited_out,
    passes,
    tells_again,
)
from lakebound.alerts.model import EVERYTHING, Alert, Memory, Message, MessageKind, Policy, ToldAlert, by_severity, rank
from lakebound.alerts.shared_causes import SOURCE as SHARED
from lakebound.alerts.shared_causes import Member, SharedCause, Used, is_member, root_concern, shared_causes
from lakebound.control.findings import Finding, Findings, Severity

ConcernKey = tuple[str, str]
Named = Mapping[ConcernKey, Sequence[tuple[str, Finding]]]
"""Pipeline and concern to the sources that name it."""

_MAX_FLAPS = 5
_WEEK_SECONDS = 7 * 86_400.0


def reconcile(
    memory: Memory,
    current: Iterable[Findings],
    policy: Policy,
    now: float,
    *,
    used: Used | None = None,
    retired: Collection[str] = (),
) -> tuple[Memory, tuple[Message, ...]]:
    """Return what is to be remembered, and the messages to send, in their order.

    Args:
        memory: What the round before returned.
        current: What every source last said of every pipeline.
        policy: When something is said.
        now: Epoch seconds.
        used: What each pipeline uses that others may use, too (``shared_causes.things_used``): one cause, one alert.
        retired: Pipelines that are no more: nobody will look at them again, so what is open of them is over.
    """
    looks = {(found.pipeline, found.source): found for found in current if found.pipeline not in retired}
    looks[EVERYTHING, SHARED] = Findings(source=SHARED, pipeline=EVERYTHING, at=now)
    named = _named(looks, policy, now)
    known = {alert.key: alert for alert in memory.alerts}
    alerts = {
        key: _updated(known.get(key), key, named.get(key, ()), looks, policy, now) for key in dict.fromkeys((*known, *named))
    }
    for cause in shared_causes(_members(alerts, named), used or {}, memory.alerts):
        shared = _of_cause(cause, known, alerts, looks, policy, now)
        alerts[shared.key] = shared
        named[shared.key] = [(SHARED, cause.finding())]
    said: dict[tuple[str, MessageKind], list[Alert]] = defaultdict(list)
    kept: list[Alert] = []
    for alert in by_severity(list(alerts.values())):
        if alert.pipeline in retired:
            after, kind = _ended(alert, now)
        else:
            may_open = alert.key in named and _is_due(alert, alerts.values(), policy, now)
            after, kind = _judged(alert, alerts.values(), policy, now, may_open=may_open)
        if kind is not None:
            said[after.pipeline, kind].append(after)
        if _is_worth_keeping(after, policy, now):
            kept.append(after)
    order = list(MessageKind)
    groups = sorted(said.items(), key=lambda group: (group[0][0], order.index(group[0][1])))
    messages = tuple(_message(pipeline, kind, group, kept, now) for (pipeline, kind), group in groups)
    return Memory(alerts=tuple(kept)), messages


def _named(looks: Mapping[ConcernKey, Findings], policy: Policy, now: float) -> dict[ConcernKey, list[tuple[str, Finding]]]:
    named: defaultdict[ConcernKey, list[tuple[str, Finding]]] = defaultdict(list)
    for (pipeline, source), found in looks.items():
        for finding in found.findings:
            named[pipeline, concern_of(source, finding)].append((source, _as_severe_as_it_is(source, finding, policy, now)))
    return named


def _as_severe_as_it_is(source: str, finding: Finding, policy: Policy, now: float) -> Finding:
    """Return a finding; an outage that is short and that the application waits for wakes nobody up."""
    is_short = is_waited_out(source, finding) and now - finding.since < policy.critical_after_seconds
    if is_short and finding.severity is Severity.CRITICAL:
        return finding.model_copy(update={"severity": Severity.WARNING})
    return finding


def _members(alerts: Mapping[ConcernKey, Alert], named: Named) -> list[Member]:
    """Return the problems of single pipelines that are still there, those whose source has not looked again, too."""
    found = []
    for (pipeline, concern), alert in alerts.items():
        if pipeline != EVERYTHING and alert.is_live and alert.named_by and alert.severity is not Severity.INFO:
            source = alert.lead.partition(":")[0]
            lead = named.get((pipeline, concern)) or [(source, _finding_of(alert))]
            found.append(Member(pipeline, concern, min(lead, key=_first_to_tell)[1]))
    return found


def _finding_of(alert: Alert) -> Finding:
    body = alert.model_dump(include={"severity", "what", "since", "evidence", "runbook", "done"})
    return Finding(cause=alert.lead.partition(":")[2] or alert.concern, **body)


def _of_cause(
    cause: SharedCause,
    known: Mapping[ConcernKey, Alert],
    alerts: Mapping[ConcernKey, Alert],
    looks: Mapping[ConcernKey, Findings],
    policy: Policy,
    now: float,
) -> Alert:
    """Return the alert of a shared cause, as old as the oldest of its parts that nobody was told of."""
    finding = cause.finding()
    key = (EVERYTHING, concern_of(SHARED, finding))
    alert = _updated(known.get(key), key, [(SHARED, finding)], looks, policy, now)
    parts = [alerts[member.pipeline, member.concern] for member in cause.members]
    first = min([alert.first_seen, *(part.first_seen for part in parts if not part.is_open)])
    return alert.model_copy(update={"first_seen": first, "shared": cause.concern, "pipelines": cause.pipelines})


def _updated(
    known: Alert | None,
    key: ConcernKey,
    found: Sequence[tuple[str, Finding]],
    looks: Mapping[ConcernKey, Findings],
    policy: Policy,
    now: float,
) -> Alert:
    """Return the alert as it stands by what the sources say now."""
    if not found:
        assert known is not None, "an alert is remembered, or named"
        return _unnamed(known, looks, policy, now)
    source, lead = min(found, key=_first_to_tell)
    body = {
        "lead": f"{source}:{lead.cause}",
        **{name: getattr(lead, name) for name in ("severity", "what", "evidence", "runbook", "done")},
    }
    sources = tuple(sorted({source for source, _ in found}))
    since = min(finding.since for _, finding in found)
    if known is None or not known.is_live:
        flaps = _flaps(known, policy, now)
        return Alert(pipeline=key[0], concern=key[1], since=since, first_seen=now, named_by=sources, flaps=flaps, **body)
    waiting = _not_looked_again(known, sources, looks, policy, now)
    changes = {"since": min(since, known.since), "named_by": (*sources, *waiting), "gone_since": None, **body}
    return known.model_copy(update=changes)


def _flaps(known: Alert | None, policy: Policy, now: float) -> int:
    if known is None or now - (known.resolved_at or now) >= policy.flap_seconds:
        return 0
    return min(known.flaps + 1, _MAX_FLAPS)


def _first_to_tell(named: tuple[str, Finding]) -> tuple[int, bool, float, str]:
    source, finding = named
    return -rank(finding.severity), source not in IMMEDIATE, finding.since, finding.cause


def _unnamed(known: Alert, looks: Mapping[ConcernKey, Findings], policy: Policy, now: float) -> Alert:
    waiting = _not_looked_again(known, (), looks, policy, now)
    if waiting or not known.is_live:
        return known.model_copy(update={"named_by": waiting})
    return known.model_copy(update={"named_by": (), "gone_since": known.gone_since or now})


def _not_looked_again(
    known: Alert, naming: Collection[str], looks: Mapping[ConcernKey, Findings], policy: Policy, now: float
) -> tuple[str, ...]:
    """Return the sources that named it and have not looked since, or not recently: they may still mean it."""
    fresh = {
        source
        for source in known.named_by
        if (look := looks.get((known.pipeline, source))) is not None
        and (source in LOOKS_AT_A_START or now - look.at <= policy.stale_after_seconds)
    }
    return tuple(source for source in known.named_by if source not in fresh and source not in naming)


def _judged(
    alert: Alert, others: Iterable[Alert], policy: Policy, now: float, *, may_open: bool
) -> tuple[Alert, MessageKind | None]:
    """Return the alert after this round, and what is said of it."""
    if not alert.is_live:
        return alert, None
    if alert.opened_at is None:
        return (_opened(alert, now), MessageKind.OPENED) if may_open else (alert, None)
    if _is_over(alert, policy, now):
        return _ended(alert, now)
    if alert.gone_since is not None:
        return alert, None
    if rank(alert.severity) > rank(alert.told_severity):
        return alert.model_copy(update={"told_severity": alert.severity, "told_at": now}), MessageKind.WORSENED
    if _is_to_be_said_again(alert, others, policy, now):
        return alert.model_copy(update={"told_at": now, "reminders": alert.reminders + 1}), MessageKind.REMINDER
    return alert, None


def _ended(alert: Alert, now: float) -> tuple[Alert, MessageKind | None]:
    if not alert.is_open:
        return alert.model_copy(update={"gone_since": alert.gone_since or now}), None
    return alert.model_copy(update={"resolved_at": now, "told_at": now, "named_by": ()}), MessageKind.RESOLVED


def _opened(alert: Alert, now: float) -> Alert:
    changes = {"opened_at": now, "told_at": now, "told_severity": alert.severity, "told_by": _source(alert)}
    return alert.model_copy(update=changes)


def _is_due(alert: Alert, others: Iterable[Alert], policy: Policy, now: float) -> bool:
    if any(_explains(other, alert, policy, now) for other in others):
        return False
    if _source(alert) in IMMEDIATE and not is_event_of_outage(_source(alert), alert.concern, alert.severity):
        return True
    if is_result(alert.lead):
        return True
    hold = policy.follow_after_seconds if is_symptom(alert.concern) else policy.open_after_seconds
    return now - alert.first_seen >= hold


def _source(alert: Alert) -> str:
    return alert.lead.partition(":")[0]


def _explains(other: Alert, alert: Alert, policy: Policy, now: float) -> bool:
    hits = other.pipeline == alert.pipeline or alert.pipeline in other.pipelines
    concern = root_concern(other)
    is_behind = hits and (follows(alert.concern, concern) or tells_again(_source(alert), alert.concern, concern))
    if not is_behind and not is_member(alert, other):
        return False
    if other.resolved_at is None:
        return other.opened_at is not None or other.gone_since is None
    return passes(alert.concern) and now - other.resolved_at < policy.grace_seconds


def _is_over(alert: Alert, policy: Policy, now: float) -> bool:
    hold = policy.resolve_after_seconds * 2**alert.flaps
    return alert.gone_since is not None and now - alert.gone_since >= hold


def _is_to_be_said_again(alert: Alert, others: Iterable[Alert], policy: Policy, now: float) -> bool:
    after = getattr(policy.remind_after_seconds, alert.severity.value)
    if after is not None and _source(alert) in WEEKLY:
        after = max(after, _WEEK_SECONDS)
    if after is None or now - (alert.told_at or now) < after:
        return False
    return not any(other.is_open and _explains(other, alert, policy, now) for other in others)


def _is_worth_keeping(alert: Alert, policy: Policy, now: float) -> bool:
    if alert.resolved_at is not None:
        return now - alert.resolved_at < max(policy.flap_seconds, policy.grace_seconds)
    return alert.opened_at is not None or alert.gone_since is None


def _message(pipeline: str, kind: MessageKind, group: Sequence[Alert], kept: Iterable[Alert], now: float) -> Message:
    followers = [
        alert for alert in kept if alert.pipeline == pipeline and alert.is_live and alert.opened_at is None and not alert.shared
    ]
    told = tuple(_told(alert, followers if kind is not MessageKind.RESOLVED else ()) for alert in group)
    digest = hashlib.sha256("\n".join(f"{a.id} {a.told_severity} {a.reminders}" for a in group).encode()).hexdigest()
    return Message(id=f"{pipeline}-{kind.value}-{digest[:16]}", kind=kind, pipeline=pipeline, at=now, alerts=told)


def _told(alert: Alert, followers: Iterable[Alert]) -> ToldAlert:
    source, _, cause = alert.lead.partition(":")
    return ToldAlert(
        id=alert.id,
        source=source,
        cause=cause,
        severity=max(alert.severity, alert.told_severity or alert.severity, key=rank),
        what=alert.what,
        since=alert.since,
        evidence=alert.evidence,
        runbook=alert.runbook,
        done=alert.done,
        pipelines=alert.pipelines,
        told_by=alert.told_by or source,
        also=tuple(follower.what for follower in followers if follows(follower.concern, alert.concern)),
    )
