"""Delivery: in order, tried again, never lost, told apart by an id when a crash makes it come twice."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from lakebound.alerts.model import Message, MessageKind, ToldAlert
from lakebound.alerts.outbox import (
    KEPT_SECONDS,
    NoConnectionError,
    NotDeliveredError,
    NotFromHereError,
    deliver,
    retry_seconds,
)
from lakebound.alerts.routes import DEFAULT_ALERTS, DEFAULT_CHANNEL, AlertsSpec, ChannelSpec, RouteSpec
from lakebound.alerts.store import MAX_OUTBOX, AlertState, AlertStore
from lakebound.control.findings import Severity

ALERTS = AlertsSpec(
    channels={
        name: ChannelSpec.model_validate({"webhook": {"connection": name, "optional": name == "maybe"}})
        for name in ("a", "b", "maybe")
    },
    routes=(RouteSpec(to=("a", "b")),),
)


def message(number: int) -> Message:
    told = ToldAlert(id=f"alert-{number}", source="doctor", cause="c", severity=Severity.WARNING, what="w", since=0.0)
    return Message(id=f"m{number}", kind=MessageKind.OPENED, pipeline="orders", at=0.0, alerts=(told,))


def queue(store: AlertStore, *deliveries: tuple[str, int]) -> None:
    with store.changing():
        state = store.read()
        for channel, number in deliveries:
            state = state.queued(channel, message(number))
        store.write(state)


class Endpoints:
    """Channels that take what they are sent, unless they are down."""

    def __init__(self) -> None:
        self.got: list[tuple[str, str]] = []
        self.down: dict[str, Exception] = {}
        self.asked: list[str] = []
        self.refused: set[str] = set()

    def send(self, channel: ChannelSpec, sent: Message) -> None:
        assert channel.webhook is not None
        name = channel.webhook.connection
        self.asked.append(name)
        if name in self.down:
            raise self.down[name]
        if sent.id in self.refused:
            raise NotDeliveredError(f"connection {name}: the answer was 413")
        self.got.append((name, sent.id))


@pytest.fixture
def store(tmp_path: Path) -> AlertStore:
    return AlertStore(tmp_path)


def test_a_channel_that_is_down_delays_its_own_messages_only_and_gets_them_in_order(store: AlertStore) -> None:
    endpoints, now = Endpoints(), 1000.0
    endpoints.down["a"] = NotDeliveredError("connection a: ConnectionError")
    queue(store, ("a", 1), ("b", 1), ("a", 2), ("b", 2))
    report = deliver(store, ALERTS, endpoints.send, lambda: now)
    assert endpoints.got == [("b", "m1"), ("b", "m2")]
    assert (report.failed, report.left) == ((("a", "connection a: ConnectionError"),), 2)
    assert endpoints.asked.count("a") == 1, "a channel that is down is asked once in a round"
    queue(store, ("a", 3))
    deliver(store, ALERTS, endpoints.send, lambda: now + 1)
    assert endpoints.asked.count("a") == 1, "and not before its time"
    endpoints.down.clear()
    assert deliver(store, ALERTS, endpoints.send, lambda: now + 15).left == 0
    assert [one for one in endpoints.got if one[0] == "a"] == [("a", "m1"), ("a", "m2"), ("a", "m3")]


@pytest.mark.parametrize("channel", ["a", "maybe"])
def test_what_one_process_cannot_send_delays_no_other(store: AlertStore, channel: str) -> None:
    endpoints, now = Endpoints(), 1000.0
    endpoints.down[channel] = NotFromHereError("there is no such connection here")
    queue(store, (channel, 1), (channel, 2))
    for later in range(5):
        report = deliver(store, ALERTS, endpoints.send, lambda later=later: now + later)  # type: ignore[misc]
        assert dict(report.failed).keys() == ({channel} if channel == "a" else set())
    assert [(one.tries, one.next_try_at) for one in store.read().outbox] == [(0, 0.0), (0, 0.0)]
    assert "no such connection here" in store.read().outbox[0].problem
    endpoints.down.clear()
    deliver(store, ALERTS, endpoints.send, lambda: now + 5)
    assert endpoints.got == [(channel, "m1"), (channel, "m2")]


def test_the_longest_wait_between_two_tries_is_bounded() -> None:
    assert [retry_seconds(tries) for tries in (1, 2, 3, 50)] == [15, 30, 60, 300]


def test_a_crash_between_sending_and_writing_sends_the_same_id_again(
    store: AlertStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoints = Endpoints()
    queue(store, ("a", 1), ("a", 2))
    with monkeypatch.context() as patch:
        patch.setattr(AlertStore, "write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            deliver(store, ALERTS, endpoints.send)
    assert deliver(store, ALERTS, endpoints.send).left == 0
    assert endpoints.got == [("a", "m1"), ("a", "m1"), ("a", "m2")]


def test_what_raises_anything_is_tried_again_and_its_text_is_kept_nowhere(store: AlertStore) -> None:
    endpoints = Endpoints()
    endpoints.down["a"] = ValueError("https://hooks.example.org/canary-secret")
    queue(store, ("a", 1))
    assert deliver(store, ALERTS, endpoints.send, lambda: 0.0).failed == (("a", "ValueError"),)
    assert "canary-secret" not in store.file.read_text()
    assert [(one.tries, one.problem) for one in store.read().outbox] == [(1, "ValueError")]


def waits_for(store: AlertStore) -> list[str]:
    return [delivery.channel for delivery in store.read().outbox]


def test_a_connection_that_need_not_be_there_is_waited_for_without_a_word_and_not_for_ever(store: AlertStore) -> None:
    endpoints = Endpoints()
    endpoints.down = dict.fromkeys(("a", "maybe"), NoConnectionError("there is none"))
    queue(store, ("maybe", 1), ("maybe", 2), ("a", 1))
    report = deliver(store, ALERTS, endpoints.send, lambda: 0.0)
    assert (report.failed, report.left) == ((("a", "there is none"),), 1)
    assert (waits_for(store), endpoints.asked) == (["maybe", "maybe", "a"], ["maybe", "a"])
    assert store.read().outbox[0].problem == "there is none; the connection is optional"
    # Airflow says so, too, while its API server is away.
    del endpoints.down["maybe"]
    deliver(store, ALERTS, endpoints.send, lambda: 15.0)
    assert endpoints.got == [("maybe", "m1"), ("maybe", "m2")]
    endpoints.down["maybe"] = NoConnectionError("there is none")
    queue(store, ("maybe", 3))
    assert deliver(store, ALERTS, endpoints.send, lambda: KEPT_SECONDS - 1).left == 1
    report = deliver(store, ALERTS, endpoints.send, lambda: KEPT_SECONDS + 300)
    assert ("maybe" in waits_for(store), store.read().dropped) == (False, 1), "the other one was waited for"
    assert [channel for channel, _, _ in report.given_up] == ["a"]


def test_what_waits_for_a_channel_that_the_file_does_not_name_is_sent_by_the_default_one_or_stays_for_a_while(
    store: AlertStore,
) -> None:
    endpoints = Endpoints()
    queue(store, (DEFAULT_CHANNEL, 1), ("a", 1), ("gone", 1))
    assert deliver(store, DEFAULT_ALERTS, endpoints.send, lambda: 0.0).left == 2, "the file is away"
    queue(store, (DEFAULT_CHANNEL, 2))
    deliver(store, ALERTS, endpoints.send, lambda: 60.0)
    assert endpoints.got == [(DEFAULT_CHANNEL, "m1"), ("a", "m1"), (DEFAULT_CHANNEL, "m2")]
    assert (waits_for(store), store.read().dropped) == (["gone"], 0)
    report = deliver(store, ALERTS, endpoints.send, lambda: KEPT_SECONDS)
    assert report.given_up == (("gone", "m1", "there is no such channel any more; given up after 72 hours"),)
    assert (waits_for(store), store.read().dropped) == ([], 1)


def test_a_message_that_is_never_taken_goes_behind_the_others_and_is_given_up_when_it_is_old(store: AlertStore) -> None:
    endpoints = Endpoints()
    endpoints.refused = {"m1", "m2"}
    queue(store, *(("a", number) for number in range(1, 6)))
    for now in range(0, 600, 60):
        deliver(store, ALERTS, endpoints.send, lambda now=now: float(now))
    assert [sent for _, sent in endpoints.got] == ["m3", "m4", "m5"]
    queue(store, ("a", 6))
    assert deliver(store, ALERTS, endpoints.send, lambda: 600.0).sent == (("a", "m6"),), "at once"
    assert [delivery.message.id for delivery in store.read().outbox] == ["m1", "m2"]
    reports = [deliver(store, ALERTS, endpoints.send, lambda now=now: KEPT_SECONDS + now) for now in (0, 60)]
    why = "connection a: the answer was 413; given up after 72 hours"
    assert [given for report in reports for given in report.given_up] == [("a", "m1", why), ("a", "m2", why)]
    assert (waits_for(store), store.read().dropped) == ([], 2)


def test_a_channel_that_was_down_for_hours_gets_its_messages_in_order(store: AlertStore) -> None:
    endpoints = Endpoints()
    endpoints.down["a"] = NotDeliveredError("connection a: ConnectionError")
    queue(store, *(("a", number) for number in range(1, 6)))
    for now in range(0, 7200, 60):
        asked = len(endpoints.asked)
        deliver(store, ALERTS, endpoints.send, lambda now=now: float(now))
        assert len(endpoints.asked) - asked <= 2, "one more, to see whether it is the message"
    endpoints.down.clear()
    for now in range(7200, 7800, 60):
        deliver(store, ALERTS, endpoints.send, lambda now=now: float(now))
    assert [sent for _, sent in endpoints.got] == ["m1", "m2", "m3", "m4", "m5"]


def test_while_one_process_sends_another_leaves_its_message_to_it(store: AlertStore) -> None:
    inside, go_on, got = threading.Event(), threading.Event(), list[str]()

    def slowly(_: ChannelSpec, sent: Message) -> None:
        got.append(sent.id)
        inside.set()
        assert go_on.wait(10)

    queue(store, ("a", 1))
    first = threading.Thread(target=deliver, args=(store, ALERTS, slowly))
    first.start()
    assert inside.wait(10)
    queue(store, ("a", 2))
    assert deliver(store, ALERTS, slowly).sent == ()
    go_on.set()
    first.join(10)
    assert got == ["m1", "m2"]


def test_a_channel_that_takes_nothing_for_ever_keeps_the_newest(store: AlertStore) -> None:
    state = AlertState().queued("b", message(0))
    for number in range(MAX_OUTBOX + 3):
        state = state.queued("a", message(number))
    assert (len(state.outbox), state.dropped) == (MAX_OUTBOX + 1, 3)
    assert [one.message.id for one in state.outbox[:2]] == ["m0", "m3"]


def test_a_file_that_cannot_be_read_is_moved_aside(store: AlertStore) -> None:
    queue(store, ("a", 1))
    store.file.write_text("{torn")
    assert store.read() == AlertState()
    assert (store.folder / "state.unreadable").read_text() == "{torn"
