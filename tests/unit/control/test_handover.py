"""Offers of maintenance to the stream: one of both has it, and what nobody takes costs little."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from lakebound.control import handover
from lakebound.control.folder import ControlFolder
from lakebound.control.handover import Answer, HandOver, TakeOffers, outstanding_since_ms
from lakebound.control.lease import acquire, release

TABLE = "iceberg:shop.orders"


@pytest.fixture(autouse=True)
def _few_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handover, "_LOOKS_EVERY_SECONDS", 0.001)
    monkeypatch.setattr(handover, "_LOOKS_FOR_TAKER", 5)
    monkeypatch.setattr(handover, "_LOOKS_FOR_ANSWER", 5)


@pytest.fixture
def control(tmp_path: Path) -> ControlFolder:
    """Of a pipeline whose stream runs: this process."""
    found = ControlFolder(tmp_path, "orders")
    acquire(found, "app", 3600)
    return found


def files(control: ControlFolder) -> list[str]:
    return sorted(path.suffix for path in control.prepared(TABLE).iterdir())


def test_without_a_stream_nothing_is_offered(control: ControlFolder) -> None:
    release(control, acquire(control, "next", 3600, by_force=True))
    assert HandOver(control, TABLE)("a commit", 1) is None
    assert not control.prepared(TABLE).exists()


def test_an_offer_that_nobody_takes_is_withdrawn_and_the_next_not_made(
    control: ControlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand = HandOver(control, TABLE)
    assert hand("a commit", 1) is None and files(control) == []
    monkeypatch.setattr(handover, "_LOOKS_FOR_TAKER", 10**9)
    assert hand("another", 1) is None, "it would look for a taker for ever"


def test_what_is_taken_is_answered_and_nothing_is_left(control: ControlFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handover, "_LOOKS_FOR_TAKER", 5000)
    monkeypatch.setattr(handover, "_LOOKS_FOR_ANSWER", 5000)
    hand, take, answers = HandOver(control, TABLE), TakeOffers(control), list[Answer | None]()
    for given in (Answer("committed", "7"), Answer("refused", reason="stale")):
        offering = threading.Thread(target=lambda: answers.append(hand("a commit", 1)))
        offering.start()
        while not (offers := list(take(TABLE))):
            time.sleep(0.001)
        (offer,) = offers
        assert offer.body == "a commit" and not list(take(TABLE)), "it is taken once"
        offer.answer(given)
        offering.join()
        assert answers.pop() == given and files(control) == []


def test_three_refusals_in_a_row_are_enough(control: ControlFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    hand = HandOver(control, TABLE)
    monkeypatch.setattr(hand, "_wait", lambda path: Answer("refused"))
    assert [hand("a commit", 1) for _ in range(4)] == [Answer("refused")] * 3 + [None]


def test_an_offer_without_an_answer_may_still_be_committed(control: ControlFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    hand, taken = HandOver(control, TABLE), list[handover.Offer]()
    clock = SimpleNamespace(time=time.time, sleep=lambda seconds: taken.extend(TakeOffers(control)(TABLE)))
    monkeypatch.setattr(handover, "time", clock)
    now_ms = int(time.time() * 1000)
    answer = hand("a commit", now_ms - 5000)
    assert answer is not None and answer.outcome == "unknown" and files(control) == [".taken"]
    assert outstanding_since_ms(control, TABLE, now_ms) == now_ms - 5000, "its files are no orphans"
    assert outstanding_since_ms(control, "delta:shop.orders", now_ms) is None
    day_ms = 25 * 3600 * 1000
    assert outstanding_since_ms(control, TABLE, now_ms + day_ms) is None, "nobody is suspended for so long"
    taken[0].answer(Answer("committed", "8"))
    assert hand("a commit", 1) is None, "a stream that does not answer is offered nothing more"


def test_the_stream_passes_over_what_a_killed_run_left(control: ControlFolder) -> None:
    folder = control.prepared(TABLE)
    folder.mkdir(parents=True)
    (folder / "torn.offered").write_text("{")
    (folder / "old.offered").write_text('{"prepared_since_ms": 1, "body": "a commit"}')
    (folder / "half.draft").write_text("{")
    os.utime(folder / "old.offered", (time.time() - 60,) * 2)
    assert list(TakeOffers(control)(TABLE)) == []
    assert files(control) == [".draft", ".offered", ".taken"]
    for path in folder.iterdir():
        os.utime(path, (time.time() - 25 * 3600,) * 2)
    HandOver(control, TABLE)("a commit", 1)
    assert files(control) == [], "the next run forgets it after a day"
