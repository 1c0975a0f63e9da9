"""Delivers what is queued, in the order of each channel; what a channel does not take stays, and is tried again later.

A message that its channel refuses, while it takes others, goes behind them. What is old is given up after one more try.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from lakebound.alerts.model import Message
from lakebound.alerts.routes import DEFAULT_ALERTS, AlertsSpec, ChannelSpec
from lakebound.alerts.store import AlertState, AlertStore, Delivery
from lakebound.errors import LakeboundError

_FIRST_RETRY_SECONDS = 15.0
_LONGEST_RETRY_SECONDS = 300.0

KEPT_SECONDS = 3 * 86_400.0
"""So long, a weekend and more, a message waits for its channel, for its connection, or for a channel that nobody knows."""

REFUSED_TRIES = 3
"""After this number of tries another message of the channel is tried, too. If that succeeds, the first one goes to the end."""

Send = Callable[[ChannelSpec, Message], None]
"""Delivers a message, or raises. Only its own ``NotDeliveredError`` may say more than the class of what went wrong."""


class NotDeliveredError(LakeboundError):
    """A channel did not take a message. The text holds neither address nor secret."""


class NoConnectionError(NotDeliveredError):
    """The connection that a channel names is not there."""


class NotFromHereError(NoConnectionError):
    """This process does not see the connection, but another one may: the try does not count, and delays nobody's next one."""


@dataclass(frozen=True)
class Delivered:
    """How a round of sending went.

    Attributes:
        sent: Ids of messages, per channel.
        failed: Why, per channel.
        given_up: Ids of messages that are not tried any more, and why, per channel.
        left: Deliveries that are still to be made, but for those that wait for a connection that need not be there.
    """

    sent: tuple[tuple[str, str], ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    given_up: tuple[tuple[str, str, str], ...] = ()
    left: int = 0


@dataclass(frozen=True)
class Failure:
    """Why a message was not delivered.

    Attributes:
        is_unconnected: Its connection is not there.
        is_allowed: That may be so.
        counts: Whether the next try waits longer. It does not where another process may see the connection.
    """

    problem: str
    is_unconnected: bool = False
    is_allowed: bool = False
    counts: bool = True


def retry_seconds(tries: int) -> float:
    """Return the pause after this number of failed tries."""
    return float(min(_LONGEST_RETRY_SECONDS, _FIRST_RETRY_SECONDS * 2 ** max(0, tries - 1)))


def next_delivery(state: AlertState, now: float, passed_over: Collection[str]) -> Delivery | None:
    """Return the next one that is due. Pure.

    Of a channel it is the oldest only, so that none overtakes another; what the channel refused comes last, each by itself.

    Args:
        state: What is queued.
        now: Epoch seconds.
        passed_over: Channels that are left out.
    """
    seen = set(passed_over)
    for delivery in sorted(state.outbox, key=lambda one: (one.is_refused, one.number)):
        if delivery.channel not in seen and delivery.next_try_at <= now:
            return delivery
        if not delivery.is_refused:
            seen.add(delivery.channel)
    return None


def another_of(state: AlertState, delivery: Delivery) -> Delivery | None:
    """Return another one of its channel, that which was tried least: it shows whether the channel takes anything. Pure."""
    others = [one for one in state.outbox if one.channel == delivery.channel and one.number != delivery.number]
    return min((one for one in others if not one.is_refused), key=lambda one: (one.tries, one.number), default=None)


def after_failure(delivery: Delivery, failure: Failure, now: float) -> Delivery | None:
    """Return the delivery after another try; None when it is too old for one more. Pure.

    Args:
        delivery: What was tried.
        failure: What the channel answered.
        now: Epoch seconds.
    """
    if _is_old(delivery, now):
        return None
    changes: dict[str, object] = {"problem": failure.problem, "is_unconnected": failure.is_allowed}
    if failure.counts:
        tries = delivery.tries + 1
        changes |= {"tries": tries, "next_try_at": now + retry_seconds(tries)}
    return delivery.model_copy(update=changes)


def deliver(store: AlertStore, alerts: AlertsSpec, send: Send, clock: Callable[[], float] = time.time) -> Delivered:
    """Send what is due. Returns at once when another process is sending: it takes along what was queued before.

    Raises nothing for what a channel does. What waits for a channel that ``alerts`` has not is sent by the default one of that
    name; if there is none, it is kept for a while, as the file may have been away or wrong for a moment.

    Args:
        store: Holds what is queued.
        alerts: The channels.
        send: Delivers one message by one channel.
        clock: Epoch seconds.
    """
    sending = _Sending(store, {**DEFAULT_ALERTS.channels, **alerts.channels}, send, clock)
    while True:
        with store.sending() as is_mine:
            if not is_mine:
                break
            sending.give_up_unknown()
            while (delivery := sending.next()) is not None:
                sending.take(delivery)
        # Somebody may have queued a message after the last look, and found this process still sending.
        if sending.next() is None:
            break
    return sending.report()


@dataclass
class _Sending:
    """One call of ``deliver``, and how it has gone so far."""

    store: AlertStore
    channels: Mapping[str, ChannelSpec]
    send: Send
    clock: Callable[[], float]
    sent: list[tuple[str, str]] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    given_up: list[tuple[str, str, str]] = field(default_factory=list)
    passed_over: set[str] = field(default_factory=set)

    def next(self) -> Delivery | None:
        """Return what is to be tried next."""
        state = self.store.read()
        unknown = {delivery.channel for delivery in state.outbox} - set(self.channels)
        return next_delivery(state, self.clock(), self.passed_over | unknown)

    def take(self, delivery: Delivery) -> None:
        """Try it. A channel that did not take it is not asked again in this call, unless it shows that it takes others."""
        failure = self._try(delivery)
        if failure is None:
            return
        may_be_refused = delivery.tries + 1 >= REFUSED_TRIES and not delivery.is_refused and not failure.is_unconnected
        other = another_of(self.store.read(), delivery) if may_be_refused else None
        if other is None or self._try(other) is not None:
            self.passed_over.add(delivery.channel)
            return
        self._write(lambda state: state.put_behind(delivery.number))

    def give_up_unknown(self) -> None:
        """Drop what has waited for long for channels that nobody knows."""
        now = self.clock()
        for delivery in self.store.read().outbox:
            if delivery.channel not in self.channels and _is_old(delivery, now):
                self._give_up(delivery, "there is no such channel any more")

    def report(self) -> Delivered:
        """Return how it went."""
        outbox = self.store.read().outbox
        unconnected = {delivery.channel for delivery in outbox if delivery.is_unconnected}
        left = sum(delivery.channel not in unconnected for delivery in outbox)
        return Delivered(tuple(self.sent), tuple(self.failed.items()), tuple(self.given_up), left)

    def _try(self, delivery: Delivery) -> Failure | None:
        """Send it, write down how that went, and return why it was not delivered."""
        failure = _failure(self.channels[delivery.channel], delivery.message, self.send)
        after = None if failure is None else after_failure(delivery, failure, self.clock())
        if failure is None:
            self._write(lambda state: state.without(delivery.number))
            self.sent.append((delivery.channel, delivery.message.id))
        elif after is not None:
            self._write(lambda state: state.replaced(after))
            if not failure.is_allowed:
                self.failed[delivery.channel] = failure.problem
        elif failure.is_allowed:
            # Nobody ever set up the connection: nobody waits for it.
            self._write(lambda state: state.without(delivery.number))
        else:
            self._give_up(delivery, failure.problem)
        return failure

    def _give_up(self, delivery: Delivery, problem: str) -> None:
        self._write(lambda state: state.without(delivery.number).model_copy(update={"dropped": state.dropped + 1}))
        why = f"{problem}; given up after {KEPT_SECONDS / 3600:.0f} hours"
        self.given_up.append((delivery.channel, delivery.message.id, why))

    def _write(self, change: Callable[[AlertState], AlertState]) -> None:
        with self.store.changing():
            self.store.write(change(self.store.read()))


def _failure(channel: ChannelSpec, message: Message, send: Send) -> Failure | None:
    """Send it, and return why it was not delivered."""
    try:
        send(channel, message)
    except NoConnectionError as exc:
        may_be, counts = channel.is_optional, not isinstance(exc, NotFromHereError)
        told = f"{exc}; the connection is optional" if may_be else str(exc)
        return Failure(told, is_unconnected=True, is_allowed=may_be, counts=counts)
    except NotDeliveredError as exc:
        return Failure(str(exc))
    except Exception as exc:
        return Failure(type(exc).__name__)
    return None


def _is_old(delivery: Delivery, now: float) -> bool:
    return now - delivery.message.at >= KEPT_SECONDS
