"""How the application of a world can be, and numbers that warn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from lakebound.inspection.doctor.pipeline.facts import ScratchFacts, TopicRetention, Waiting
from lakebound.landing.targets.stores import StoresLook
from lakebound.landing.targets.topics import HANGING_SECONDS, OpenTransaction, WrittenTopics
from tests.support.worlds.pipeline_fault import Break, Fault, both, dropping
from tests.support.worlds.pipeline_table_faults import drop
from tests.support.worlds.pipeline_worlds import (
    APPS,
    BATCH,
    OPENING,
    PARTITIONS,
    TOPIC,
    World,
    entry,
    make_alive,
    topic_facts,
)


def application_faults(world: World) -> Iterator[Fault]:
    now = world.now
    yield Fault("lives and lands", lambda w: make_alive(w), lives=True)
    yield Fault(
        "lives and waits", _living(state="waiting", waiting_for="Kafka"), frozenset({"application-waiting"}), lives=True
    )
    yield Fault("lives and starts", _living(state="starting"), frozenset({"application-starting"}), lives=True)
    yield Fault("lives and is silent", _living(updated_at=now - 300), frozenset({"stalled"}), lives=True)
    quiet = _living(started_at=now - 900, last_commit_at=now - 800)
    yield Fault("lives and lands nothing", both(quiet, _waiting_since(700)), frozenset({"stalled"}), lives=True)
    yield Fault(
        "lives, its checkpoint is gone",
        both(_living(batch=3), dropping("checkpoints/")),
        frozenset({"checkpoint-lost"}),
        lives=True,
    )
    elsewhere = both(_living(batch=3), lambda w: w.alterations.update(scratch=ScratchFacts(exists=None)))
    yield Fault("lives, its checkpoint is on another machine", elsewhere, lives=True)
    yield Fault("lives and lags", both(_living(), _waiting_since(700)), frozenset({"lag"}), lives=True)
    flood = {"over_seconds": 300, "newest_at": now - 1, "records": 100, "quarantined": 90, "reasons": {"not_utf8": 90}}
    yield Fault("lives, and most is bad", _living(recent=flood), frozenset({"quarantine-flood"}), lives=True)
    kept = {"version": "1", "loaded_at": now - 60, "checked_at": now - 1, "problem": "it lost the column id"}
    stale = _living(references={"devices": kept})
    yield Fault("lives, and keeps older reference data", stale, frozenset({"reference-stale"}), lives=True)
    search = {"since": now - 90, "changed_at": now - 1, "records": 4096, "tried": 700, "found": 31}
    raises = frozenset({"transform-raises"})
    yield Fault("lives, and its transform raises", _living(search=search), raises, lives=True)
    yield Fault("two drivers", both(_living(), _beside), frozenset({"two-drivers"}), lives=True)
    yield Fault("two state folders", both(_living(), _older_epoch), frozenset({"two-state-folders"}), lives=True)
    for state in ("held", "stopped"):
        yield Fault(state, lambda w, s=state: w.change("desired.json", state=s, reason="audit"), frozenset({"not-wanted"}))
    yield Fault(
        "the desired state lost",
        both(dropping("desired.json"), lambda w: w.files.update({"desired.sign": "{}"})),
        frozenset({"desired-state-lost"}),
        cautious="a person may have stopped it",
    )
    ends = {"ends": ["a", "b", "c"], "at": now - 50, "reason": "a b c"}
    looping = frozenset({"crash-loop"} if world.phase in OPENING else ())
    yield Fault("a crash loop", lambda w: w.files.update({"crash-loop.json": json.dumps(ends)}), looping)
    third = {"ends": ["a", "b"], "at": now - 100, "reason": "a b"}
    yield Fault("the third barren end", lambda w: w.files.update({"crash-loop.json": json.dumps(third)}), looping)
    yield Fault("a crash loop, and a request since", _changed_since(ends))
    refused = {"app_id": APPS[2], "verdict": "refused", "reason": "it counts", "error_class": "TransformRefusedError"}
    refused |= {"started_at": now - 60, "ended_at": now - 55}
    yield Fault(
        "the last start was refused",
        lambda w: w.files.update({f"outcomes/{APPS[2]}.json": json.dumps(refused)}),
        frozenset({"start-refused"}),
        cautious="only the application sees whether its transform is still refused",
    )
    yield Fault("never started", _never_started, frozenset({"never-started"}))


def _living(**progress: Any) -> Break:
    def breaks(world: World) -> None:
        make_alive(world)
        world.change("progress.json", **progress)

    return breaks


def _waiting_since(seconds: float) -> Break:
    def breaks(world: World) -> None:
        world.look["waiting"] = {(TOPIC, p): Waiting(int((world.now - seconds) * 1000), 1.0) for p in PARTITIONS}

    return breaks


def _beside(world: World) -> None:
    world.change("lease.json", app_id="orders-g1-9", epoch=3)


def _older_epoch(world: World) -> None:
    for stored in world.targets:
        stored.add(entry("open", 9, 2 * BATCH))


def _changed_since(ends: dict[str, Any]) -> Break:
    def breaks(world: World) -> None:
        world.files["crash-loop.json"] = json.dumps(ends)
        world.change("desired.json", since=world.now)

    return breaks


def _never_started(world: World) -> None:
    world.files.clear()
    for stored in (*world.targets, world.quarantine):
        drop(stored)
    world.topics[TOPIC] = topic_facts(earliest=0)


# --- numbers -----------------------------------------------------------------------------------------------------


def number_faults() -> Iterator[Fault]:
    soon = {TOPIC: TopicRetention(milliseconds=61_000)}
    yield Fault(
        "retention is near",
        lambda w: w.look.update(retention=soon),
        frozenset({"data-loss-near"}),
        cautious="nothing is lost yet: it will be",
    )
    yield Fault("the log is full", _full, frozenset({"data-loss-near"}), cautious="nothing is lost yet: it will be")
    yield Fault("clocks differ", lambda w: w.change("lease.json", heartbeat_at=w.now + 60), frozenset({"clocks-differ"}))
    big = ScratchFacts(exists=True, bytes=2 << 30)
    yield Fault("old checkpoints pile up", lambda w: w.alterations.update(scratch=big), frozenset({"checkpoint-grows"}))
    yield Fault(
        "a target topic was recreated",
        _seen("to_topics", WrittenTopics(refusals={"topic:clean": "it was recreated"})),
        frozenset({"target-topic-refused"}),
        cautious="the start of a world has no topics as targets",
    )
    yield Fault(
        "a transaction hangs",
        lambda w: _seen("to_topics", _open_since(w.now - HANGING_SECONDS - 1))(w),
        frozenset({"hanging-transaction"}),
        cautious="nothing is lost: readers wait",
    )
    yield Fault("a transaction is open", lambda w: _seen("to_topics", _open_since(w.now - HANGING_SECONDS + 5))(w))
    yield Fault(
        "a store is another one than its ledger names",
        _stores(StoresLook(refusals={"redis:velocity": "it is another one"})),
        frozenset({"target-store-refused"}),
        cautious="the start of a world has no stores as targets",
    )
    yield Fault("a store is away", _stores(StoresLook(away={"redis:velocity": "no answer"})), frozenset({"target-store-away"}))
    yield Fault(
        "a store may forget", _stores(StoresLook(advice={"redis:velocity": "it evicts"})), frozenset({"target-store-setup"})
    )
    yield Fault("a number is not to be had", lambda w: w.look.update(unread=("no time",)), frozenset({"facts-unread"}))


def _stores(look: StoresLook) -> Break:
    return _seen("to_stores", look)


def _seen(kind: str, look: object) -> Break:
    return lambda world: world.alterations.update(targets_seen={kind: look})


def _open_since(seconds: float) -> WrittenTopics:
    return WrittenTopics(transactions=(OpenTransaction("clean", 0, 10, 12, round(seconds * 1000)),))


def _full(world: World) -> None:
    """Produced faster than the log is deep."""
    world.look["retention"] = {TOPIC: TopicRetention(bytes=1000)}
    world.look["waiting"] = {(TOPIC, p): Waiting(None, 100.0) for p in PARTITIONS}
