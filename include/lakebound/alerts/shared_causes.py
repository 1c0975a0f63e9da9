"""One cause that hits many pipelines is one alert: a broker, a catalog, a store, a topic or a disk that they share. Pure.

What each pipeline uses is known from its YAML. Where at least two pipelines have the same problem with the same thing, an alert
of all pipelines says it once and names them, and the alerts of the single pipelines follow from it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lakebound.alerts.concerns import CATALOG, CLOCK, DISK_FULL, OUTAGE, STORE, TOPIC_MISSING, TOPIC_RECREATED
from lakebound.alerts.model import EVERYTHING, Alert, rank
from lakebound.control.findings import Finding, Severity
from lakebound.spec.pipeline import PipelineSpec

SOURCE = "shared"
_LEAST = 2
"""So many pipelines make a cause a shared one."""
_MOST_NAMED = 8

Used = Mapping[str, Mapping[str, Sequence[str]]]
"""What each pipeline uses, by its name and by the concern (``things_used``)."""

_SENTENCES = {
    OUTAGE: "{thing} does not answer, so {pipelines} cannot land",
    CLOCK: "the clocks of {thing} and of this machine differ, which {pipelines} noticed",
    CATALOG: "tables in {thing} cannot be read or written, so {pipelines} cannot land",
    STORE: "{thing} refuses writes or does not answer, so {pipelines} cannot land",
    TOPIC_MISSING: "{thing} is missing, so {pipelines} cannot land",
    TOPIC_RECREATED: "{thing} was deleted and created again, so {pipelines} cannot land",
    DISK_FULL: "{thing} is full, so {pipelines} cannot land",
}
"""What is said of a concern, with the thing that the pipelines share."""


@dataclass(frozen=True)
class Member:
    """A problem of one pipeline, as its worst finding says it.

    Attributes:
        pipeline: Its name.
        concern: What it is about (``lakebound.alerts.concerns``).
        finding: The worst of the findings.
    """

    pipeline: str
    concern: str
    finding: Finding


@dataclass(frozen=True)
class SharedCause:
    """One thing that several pipelines have the same problem with.

    Attributes:
        concern: What each of them has.
        thing: What they share, in words.
        pipelines: All that were hit since the alert began, sorted.
        members: The problems that are still there.
    """

    concern: str
    thing: str
    pipelines: tuple[str, ...]
    members: tuple[Member, ...] = field(repr=False)

    @property
    def cause(self) -> str:
        """What tells it from other shared causes."""
        return f"{self.concern}:{self.thing}"

    def finding(self) -> Finding:
        """Return what is said of it: the most severe of the problems gives its reason as an example."""
        lead = min(self.members, key=lambda one: (-rank(one.finding.severity), one.finding.since, one.pipeline))
        sentence = _SENTENCES[self.concern].format(thing=self.thing, pipelines=_named(self.pipelines))
        return Finding(
            cause=self.cause,
            severity=lead.finding.severity,
            what=f"{sentence}. {lead.pipeline}: {lead.finding.what}",
            since=min(one.finding.since for one in self.members),
            evidence={"pipelines": len(self.pipelines), "still_affected": len(self.members)},
            runbook=lead.finding.runbook,
            done=lead.finding.done,
        )


def things_used(spec: PipelineSpec, home: str) -> dict[str, tuple[str, ...]]:
    """Return what a pipeline uses that others may use, too, by the concern that it would give.

    Args:
        spec: The pipeline.
        home: LAKEBOUND_HOME of this machine.
    """
    kafka = f"Kafka at {spec.connection.bootstrap_servers}"
    topics = tuple(f"topic {topic} of {kafka}" for topic in spec.topics)
    stores = tuple(dict.fromkeys(f"the store at {store.place}" for store in spec.to_stores))
    return {
        OUTAGE: (kafka,),
        CLOCK: (kafka,),
        TOPIC_MISSING: topics,
        TOPIC_RECREATED: topics,
        CATALOG: (f"the warehouse {spec.warehouse}",),
        STORE: stores,
        DISK_FULL: (f"the disk of {home}",),
    }


def shared_causes(members: Iterable[Member], used: Used, known: Iterable[Alert]) -> tuple[SharedCause, ...]:
    """Return the causes that hit several pipelines, or did so when their alert began.

    Args:
        members: The problems of single pipelines.
        used: What each pipeline uses (``things_used``), by its name.
        known: The alerts of the last round.
    """
    hit_before = {alert.concern: alert.pipelines for alert in known if alert.shared and alert.is_live}
    causes = []
    for concern, group in _by_concern(members).items():
        for thing, hit in _by_thing(group, used, concern).items():
            pipelines = {member.pipeline for member in hit} | {*hit_before.get(f"{SOURCE}:{concern}:{thing}", ())}
            if len(pipelines) >= _LEAST:
                causes.append(SharedCause(concern, thing, tuple(sorted(pipelines)), tuple(hit)))
    return tuple(causes)


def is_member(alert: Alert, shared: Alert) -> bool:
    """Whether an alert of one pipeline is part of an alert of all pipelines."""
    if shared.pipeline != EVERYTHING or alert.pipeline == EVERYTHING:
        return False
    if shared.shared:
        return alert.concern == shared.shared and alert.pipeline in shared.pipelines
    # The watch itself sees that a disk is full, whatever pipelines are there.
    is_disk = shared.concern.startswith("disks:") and shared.severity is Severity.CRITICAL
    return is_disk and alert.concern == DISK_FULL


def _by_concern(members: Iterable[Member]) -> dict[str, list[Member]]:
    groups: dict[str, list[Member]] = defaultdict(list)
    for member in members:
        if member.concern in _SENTENCES:
            groups[member.concern].append(member)
    return groups


def _by_thing(group: Sequence[Member], used: Used, concern: str) -> dict[str, list[Member]]:
    """Return who has the problem with what: of several things that one uses, the one that most of the others use, too."""
    things = {member.pipeline: used.get(member.pipeline, {}).get(concern, ()) for member in group}
    counts = Counter(thing for own in things.values() for thing in own)
    found: dict[str, list[Member]] = defaultdict(list)
    for member in group:
        if own := things[member.pipeline]:
            found[max(own, key=lambda thing: (counts[thing], thing))].append(member)
    return found


def _named(pipelines: Sequence[str]) -> str:
    shown, rest = pipelines[:_MOST_NAMED], len(pipelines) - _MOST_NAMED
    more = f" and {rest} more" if rest > 0 else ""
    return f"{len(pipelines)} pipelines ({', '.join(shown)}{more})"


def root_concern(alert: Alert) -> str:
    """Return what an alert is about for a single pipeline: what follows from that follows from the alert of all."""
    return alert.shared or alert.concern
