"""Delivers what is queued, in the order of each channel; what a channel does not take stays, and is tried again later."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from lakebound.alerts.model import Message
from lakebound.alerts.routes import AlertsSpec, ChannelSpec
from lakebound.alerts.store import AlertState, AlertStore, Delivery
from lakebound.errors import LakeboundError

_FIRST_RETRY_SECONDS = 15.0
_LONGEST_RETRY_SECONDS = 300.0

Send = Callable[[ChannelSpec, Message], None]
"""Delivers a message, or raises. Only its own ``NotDeliveredError`` may say more than the class of what went wrong."""


class NotDeliveredError(LakeboundError):
    """A channel did not take a message. The text holds neither address nor secret."""


class NoConnectionError(NotDeliveredError):
    """The connection that a channel names is not there."""


@dataclass(frozen=True)
class Delivered:
    """How a round of sending went.

    Attributes:
        sent: Ids of messages, per channel.
        failed: Why, per channel.
        left: Deliveries that are still to be made.
    """

    sent: tuple[tuple[str, str], ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    left: int = 0


def retry_seconds(tries: int) -> float:
    """Return how long is waited after so many failed tries."""
    return float(min(_LONGEST_RETRY_SECONDS, _FIRST_RETRY_SECONDS * 2 ** max(0, tries - 1)))


def next_delivery(state: AlertState, now: float, passed_over: set[str]) -> Delivery | None:
    """Return the next one that is due: the oldest of a channel only, so that none overtakes another. Pure."""
    seen: set[str] = set(passed_over)
    for delivery in sorted(state.outbox, key=lambda one: one.number):
        if delivery.channel not in seen and delivery.next_try_at <= now:
            return delivery
        seen.add(delivery.channel)
    return None


def deliver(
    store: AlertStore,
    alerts: AlertsSpec,
    send: Send,
    clock: Callable[[], float] = time.time,
    *,
    keeps_unknown: bool = False,
) -> Delivered:
    """Send what is due. Returns at once when another process is sending: it takes along what was queued before.

    Raises nothing for what a channel does.

    Args:
        store: Holds what is queued.
        alerts: The channels.
        send: Delivers one message by one channel.
        clock: Epoch seconds.
        keeps_unknown: Keep what waits for a channel that ``alerts`` has not, as when these are not the author's own channels.
    """
    sent: list[tuple[str, str]] = []
    failed: dict[str, str] = {}
    while True:
        with store.sending() as is_mine:
            if not is_mine:
                break
            while (delivery := _next(store, alerts, clock(), failed, keeps_unknown)) is not None:
                channel = alerts.channels.get(delivery.channel)
                # One that was taken out of alerts.yaml: nobody waits for it any more.
                problem, is_done = (None, False) if channel is None else _try(channel, delivery.message, send)
                _record(store, delivery, problem, clock())
                if problem is not None:
                    failed[delivery.channel] = problem
                elif is_done:
                    sent.append((delivery.channel, delivery.message.id))
        # Somebody may have queued a message after the last look, and found this process still sending.
        if _next(store, alerts, clock(), failed, keeps_unknown) is None:
            break
    return Delivered(tuple(sent), tuple(failed.items()), len(store.read().outbox))


def _next(store: AlertStore, alerts: AlertsSpec, now: float, failed: Collection[str], keeps_unknown: bool) -> Delivery | None:
    state = store.read()
    unknown = {delivery.channel for delivery in state.outbox} - set(alerts.channels) if keeps_unknown else set()
    return next_delivery(state, now, {*failed, *unknown})


def _try(channel: ChannelSpec, message: Message, send: Send) -> tuple[str | None, bool]:
    """Return why it was not delivered, and whether it was; neither where an optional connection is not there."""
    try:
        send(channel, message)
    except NoConnectionError as exc:
        return (None if channel.is_optional else str(exc)), False
    except NotDeliveredError as exc:
        return str(exc), False
    except Exception as exc:
        return type(exc).__name__, False
    return None, True


def _record(store: AlertStore, delivery: Delivery, problem: str | None, now: float) -> None:
    with store.changing():
        state = store.read()
        if problem is None:
            store.write(state.without(delivery.number))
            return
        tries = delivery.tries + 1
        changes = {"tries": tries, "next_try_at": now + retry_seconds(tries), "problem": problem}
        store.write(state.replaced(delivery.model_copy(update=changes)))
