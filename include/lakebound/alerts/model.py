"""What is remembered of alerts, what a message says, and the times that decide when something is said. Frozen values."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from lakebound.control.bounds import Moment
from lakebound.control.findings import Evidence, Severity, Since, Text
from lakebound.frozen import Frozen, FrozenRecord

EVERYTHING = "*"
"""Stands for a pipeline where an alert is about no single one."""

REPORT = "report"
"""Source of the daily report: a route that names it, or that is for everything of severity info, gets it."""

_HOUR_SECONDS = 3600.0


class MessageKind(StrEnum):
    """What a message is: the first word of an alert, another about it, the last; or about no alert at all."""

    OPENED = "opened"
    WORSENED = "worsened"
    REMINDER = "reminder"
    RESOLVED = "resolved"
    TEST = "test"
    REPORT = "report"


class Reminders(Frozen):
    """Seconds after which an open alert is said again, by its severity; null: never."""

    critical: float | None = Field(default=4 * _HOUR_SECONDS, ge=60)
    warning: float | None = Field(default=24 * _HOUR_SECONDS, ge=60)
    info: float | None = Field(default=None, ge=60)


class Policy(Frozen):
    """When messages are sent. All times are in seconds."""

    open_after_seconds: float = Field(default=60.0, ge=0, description="How long a finding must last before an alert is sent.")
    follow_after_seconds: float = Field(
        default=180.0, ge=0, description="The same for findings that are usually a consequence, such as lag."
    )
    resolve_after_seconds: float = Field(
        default=120.0,
        ge=0,
        description="How long a finding must be gone before its end is sent; the time doubles each time it comes back.",
    )
    flap_seconds: float = Field(
        default=1800.0, ge=0, description="A finding that comes back within this time is the same alert."
    )
    critical_after_seconds: float = Field(
        default=900.0,
        ge=0,
        description="An outage that an application waits for is a warning until it has lasted this long, then it is critical.",
    )
    grace_seconds: float = Field(
        default=900.0,
        ge=0,
        description="How long the consequences of a cause may last after it, for example while a stream catches up.",
    )
    stale_after_seconds: float = Field(
        default=900.0, gt=0, description="A source that has not reported for this time ends no alert."
    )
    remind_after_seconds: Reminders = Reminders()


class Alert(FrozenRecord):
    """One alert, remembered from the moment at which a source first named it. Times are epoch seconds.

    Attributes:
        concern: What it is about (``lakebound.alerts.concerns``): with the pipeline, what tells it from others.
        lead: ``source:cause`` of the finding that the fields below are of: the most severe one.
        first_seen: When a round first met it.
        named_by: The sources that name it.
        gone_since: When no source named it any more.
        opened_at: When it was told; None while it is held back.
        told_at: When it was last told.
        told_severity: The worst that was told.
        told_by: The source of its lead when it was opened: all its messages are routed by it, so its end follows its start.
        reminders: How often it was said again.
        flaps: How often it came back soon after it was resolved.
        resolved_at: When its end was told. Kept for a while, for what comes back and for what followed from it.
        shared: The concern that each of several pipelines has; empty for an alert that is about one of them, or about none.
        pipelines: Those pipelines, all that were hit since it began.
    """

    pipeline: str
    concern: str
    lead: str
    severity: Severity
    what: Text
    since: Since
    evidence: Evidence = Field(default_factory=dict)
    runbook: str | None = None
    done: Text = ""
    first_seen: Moment
    named_by: tuple[str, ...] = ()
    gone_since: Moment | None = None
    opened_at: Moment | None = None
    told_at: Moment | None = None
    told_severity: Severity | None = None
    told_by: str = ""
    reminders: int = 0
    flaps: int = 0
    resolved_at: Moment | None = None
    shared: str = ""
    pipelines: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from every other alert."""
        return self.pipeline, self.concern

    @property
    def id(self) -> str:
        """Its name in messages: the same from the first to the last message, another one when it is opened again."""
        return f"{self.pipeline}/{self.concern}/{round((self.opened_at or self.first_seen) * 1000)}"

    def is_about(self, pipeline: str) -> bool:
        """Whether it is an alert of a pipeline, alone or with others."""
        return pipeline == self.pipeline or pipeline in self.pipelines

    @property
    def is_open(self) -> bool:
        """Whether it was told, and its end was not."""
        return self.opened_at is not None and self.resolved_at is None

    @property
    def is_live(self) -> bool:
        """Whether it may still be wrong, told or not."""
        return self.resolved_at is None


class Memory(FrozenRecord):
    """All that is remembered between two rounds."""

    alerts: tuple[Alert, ...] = ()

    @property
    def open(self) -> tuple[Alert, ...]:
        """The alerts that were told and are not over, the worst first."""
        return by_severity([alert for alert in self.alerts if alert.is_open])

    def parts_of(self, alert: Alert) -> tuple[Alert, ...]:
        """Return what an open alert says of each pipeline: one that several share names others, and has a part for each."""
        if not alert.shared:
            return (alert,)
        parts = (one for one in self.alerts if one.concern == alert.shared and one.pipeline in alert.pipelines)
        return tuple(one.model_copy(update={"told_at": alert.told_at}) for one in parts if one.is_live and not one.is_open)


class ToldAlert(FrozenRecord):
    """What a message says of one alert; ``also`` is what follows from it, a sentence each.

    ``pipelines`` are those that it hits, where it is about several. ``told_by`` is the source that routes go by, and is not
    shown; empty: ``source``.
    """

    id: str
    source: str
    cause: str
    severity: Severity
    what: Text
    since: Since
    evidence: Evidence = Field(default_factory=dict)
    runbook: str | None = None
    done: Text = ""
    also: tuple[str, ...] = ()
    pipelines: tuple[str, ...] = ()
    told_by: str = Field(default="", exclude=True)


class Message(FrozenRecord):
    """What people get: one or more alerts of one pipeline, the worst first. ``id`` lets a receiver drop a second copy."""

    id: str
    kind: MessageKind
    pipeline: str
    at: float
    alerts: tuple[ToldAlert, ...] = Field(min_length=1)


_ORDER = list(Severity)


def rank(severity: Severity | None) -> int:
    """Return how much it matters, from 0; less than any for None."""
    return -1 if severity is None else _ORDER.index(severity)


def by_severity(alerts: list[Alert]) -> tuple[Alert, ...]:
    """Return them, the worst first, then by age."""
    return tuple(sorted(alerts, key=lambda alert: (-rank(alert.severity), alert.since, alert.key)))
