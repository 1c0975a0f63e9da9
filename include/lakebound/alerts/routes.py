"""``include/alerts.yaml`` as its author writes it: channels, and who is told what. Frozen models without unknown keys."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from pydantic import Field, create_model, field_validator, model_validator

from lakebound.alerts.channel import CONNECTION, ChannelKind, channel_kinds
from lakebound.alerts.model import REPORT, Message, MessageKind, Policy, ToldAlert, rank
from lakebound.control.findings import Severity
from lakebound.frozen import Frozen
from lakebound.spec.disks import DisksSpec

DEFAULT_CONNECTION = "lakebound_webhook"
DEFAULT_CHANNEL = DEFAULT_CONNECTION
"""No name that a file has for another channel: while a file is wrong, what waits for its channels is not sent by this one."""


class Channel(Frozen):
    """One way to reach people."""

    @model_validator(mode="after")
    def _one_kind(self) -> Channel:
        if len(self._given()) != 1:
            *others, last = channel_kinds()
            raise ValueError(f"give one of {', '.join(others)} and {last}")
        return self

    def _given(self) -> list[ChannelKind]:
        return [kind for name in channel_kinds() if (kind := getattr(self, name)) is not None]

    @property
    def kind(self) -> ChannelKind:
        """What the file says of it."""
        return self._given()[0]

    @property
    def is_optional(self) -> bool:
        """Whether it may be that there is no such connection."""
        return self.kind.is_optional

    @property
    def connection(self) -> str | None:
        """The Airflow connection that it needs; None where something else holds the address."""
        return self.kind.connection


if TYPE_CHECKING:
    ChannelSpec = Channel
else:
    # It has a key for each kind, and what kinds there are only their folder knows.
    ChannelSpec = create_model(
        "ChannelSpec",
        __base__=Channel,
        __doc__=Channel.__doc__,
        **{name: (kind | None, None) for name, kind in channel_kinds().items()},
    )


class RouteSpec(Frozen):
    """Who is told what; every route that fits counts."""

    severity: Severity = Field(default=Severity.WARNING, description="At least so severe.")
    pipelines: tuple[str, ...] = Field(default=("*",), min_length=1, description="Names, with * and ?.")
    sources: tuple[str, ...] = Field(
        default=("*",), min_length=1, description="doctor, stream, objectives, validation, report, …"
    )
    to: tuple[str, ...] = Field(min_length=1, description="Channels.")

    def fits(self, pipeline: str, alert: ToldAlert) -> bool:
        """Whether it is for this alert; one that hits several pipelines is for everybody who is told of one of them."""
        hit = (pipeline, *alert.pipelines)
        return (
            rank(alert.severity) >= rank(self.severity)
            and any(fnmatchcase(one, pattern) for one in hit for pattern in self.pipelines)
            and any(fnmatchcase(alert.told_by or alert.source, pattern) for pattern in self.sources)
        )


class HeartbeatSpec(Frozen):
    """An address of a service that gives an alarm when nobody asks for it any more."""

    connection: str = Field(pattern=CONNECTION, description="Airflow connection of type http; it holds the whole address.")


class AlertsSpec(Frozen):
    """The whole file."""

    channels: dict[str, ChannelSpec] = Field(min_length=1)
    routes: tuple[RouteSpec, ...] = Field(min_length=1)
    policy: Policy = Policy()
    disks: DisksSpec | None = Field(
        default=DisksSpec(), description="When a disk is too full. With null, disks are not checked."
    )
    heartbeat: HeartbeatSpec | None = Field(
        default=None, description="`lakebound watch` sends a GET to it after each good round."
    )
    runbooks: str | None = Field(default=None, description="Address of the runbooks; {runbook} stands for the page's name.")

    @field_validator("runbooks")
    @classmethod
    def _names_the_page(cls, runbooks: str | None) -> str | None:
        if runbooks is not None and "{runbook}" not in runbooks:
            raise ValueError("must hold {runbook}, such as https://wiki.example.org/runbooks/{runbook}")
        return runbooks

    @model_validator(mode="after")
    def _known_channels(self) -> AlertsSpec:
        for position, route in enumerate(self.routes):
            for channel in route.to:
                if channel not in self.channels:
                    raise ValueError(
                        f"routes[{position}].to: there is no channel {channel!r}; known channels: "
                        f"{', '.join(sorted(self.channels))}"
                    )
        return self


DEFAULT_ALERTS = AlertsSpec(
    channels={DEFAULT_CHANNEL: ChannelSpec.model_validate({"webhook": {"connection": DEFAULT_CONNECTION, "optional": True}})},
    routes=(
        RouteSpec(to=(DEFAULT_CHANNEL,)),
        RouteSpec(severity=Severity.INFO, sources=(REPORT,), to=(DEFAULT_CHANNEL,)),
    ),
)
"""Without a file: one webhook, if there is a connection of that name. It gets the daily report, too."""


def channels_of(pipeline: str, alert: ToldAlert, routes: Iterable[RouteSpec]) -> tuple[str, ...]:
    """Return the channels by which an alert is told, each once.

    Args:
        pipeline: Name of the pipeline.
        alert: What is told.
        routes: Those of ``alerts.yaml``.
    """
    return tuple(dict.fromkeys(channel for route in routes if route.fits(pipeline, alert) for channel in route.to))


def connections_of(alerts: AlertsSpec) -> tuple[str, ...]:
    """Return the ids of all connections that the file names, each once."""
    named = [channel.connection for channel in alerts.channels.values()]
    if alerts.heartbeat is not None:
        named.append(alerts.heartbeat.connection)
    return tuple(dict.fromkeys(name for name in named if name is not None))


def by_channel(message: Message, alerts: AlertsSpec) -> dict[str, Message]:
    """Return what each channel gets of a message: the alerts that are routed to it. A test goes to every channel."""
    told: dict[str, list[ToldAlert]] = {}
    for alert in message.alerts:
        everywhere = message.kind is MessageKind.TEST
        for channel in tuple(alerts.channels) if everywhere else channels_of(message.pipeline, alert, alerts.routes):
            told.setdefault(channel, []).append(alert)
    return {channel: message.model_copy(update={"alerts": tuple(found)}) for channel, found in told.items()}
