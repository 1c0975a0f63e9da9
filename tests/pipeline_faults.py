"""What can be broken in a world: control files, tables, Kafka, applications. Each fault names the rule that must notice it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from lakebound.doctor.facts import Retention, ScratchFacts, Waiting
from lakebound.kafka import TopicFacts
from lakebound.ledger import decode, encode
from tests.memory_tables import Commit, Stored
from tests.pipeline_worlds import (
    APPS,
    BATCH,
    EARLIEST,
    LATEST,
    OPENING,
    PARTITIONS,
    TOPIC,
    TOPIC_ID,
    World,
    entry,
    make_alive,
    rows,
    span,
    topic_facts,
)

Break = Callable[[World], None]


@dataclass(frozen=True)
class Fault:
    """One way in which a world is broken.

    Attributes:
        name: For messages.
        breaks: Does it.
        expects: Rules of which a finding is expected.
        cautious: The doctor asks a person although a start would land everything: why it does.
        lives: An application lives: nothing is started.
    """

    name: str
    breaks: Break
    expects: frozenset[str] = frozenset()
    cautious: str = ""
    lives: bool = False


def faults_of(world: World) -> list[Fault]:
    """Return every fault that the world can have."""
    return [
        Fault("nothing else", lambda _: None, frozenset({"application-dead"})),
        *_file_faults(world),
        *_checkpoint_faults(world),
        *_table_faults(world),
        *_kafka_faults(),
        *_application_faults(world),
        *_number_faults(),
    ]


# --- control files -----------------------------------------------------------------------------------------------

BLOCKING = ("desired.json", "submission.json")


def _file_faults(world: World) -> Iterator[Fault]:
    for name in ("lease.json", *BLOCKING, "progress.json", f"outcomes/{APPS[2]}.json"):
        if name not in world.files:
            continue
        torn = "control-file-unreadable" if name in BLOCKING else "control-file-torn"
        lost = frozenset({"state-folder-behind"} if name == "lease.json" and world.phase != "lease taken" else ())
        yield Fault(f"{name} missing", _without(name), lost)
        yield Fault(f"{name} empty", _as(name, lambda text: ""), frozenset({torn}))
        for share in (0.1, 0.5, 0.95):
            yield Fault(f"{name} cut at {share:.0%}", _as(name, _cut(share)), frozenset({torn}))
        for at in _flip_places(world.files[name]):
            yield Fault(f"{name} flipped at byte {at}", _as(name, _flip(at)))
        stale = name.replace(APPS[2], APPS[1])
        yield Fault(f"{name} an older copy", _as(name, lambda text, stale=stale: world.stale[stale]))
        yield Fault(f"{name} another pipeline's", _as(name, lambda text: text.replace("orders", "payments")))
    yield Fault("the state folder lost", lambda w: w.files.clear(), frozenset({"state-folder-behind", "application-dead"}))


def _without(name: str) -> Break:
    return lambda world: world.files.pop(name, None) and None  # type: ignore[func-returns-value]


def _as(name: str, change: Callable[[str], str]) -> Break:
    def breaks(world: World) -> None:
        world.files[name] = change(world.files[name])

    return breaks


def _cut(share: float) -> Callable[[str], str]:
    return lambda text: text[: max(1, int(len(text) * share))]


def _flip(at: int) -> Callable[[str], str]:
    return lambda text: text[:at] + chr(ord(text[at]) ^ 1) + text[at + 1 :]


def _flip_places(text: str) -> list[int]:
    """Return a brace, a letter of a key, a digit of the first number and one of the last: each class of byte."""
    digits = [at for at, char in enumerate(text) if char.isdigit()]
    return [0, 3, *digits[:1], *digits[-1:]]


# --- checkpoint --------------------------------------------------------------------------------------------------


def _checkpoint_faults(world: World) -> Iterator[Fault]:
    folder = f"checkpoints/{APPS[2]}/0/"
    offsets = sorted(name for name in world.files if name.startswith(f"{folder}offsets/"))
    if not offsets:
        return
    commits = sorted(name for name in world.files if name.startswith(f"{folder}commits/"))
    last, before = offsets[-1], offsets[-2]
    lost, torn = frozenset({"checkpoint-lost"}), frozenset({"checkpoint-lost"})
    yield Fault("checkpoint deleted", _dropping("checkpoints/"), lost)
    yield Fault("offsets deleted", _dropping(f"{folder}offsets"))
    yield Fault("commits deleted", _dropping(f"{folder}commits"))
    yield Fault("last offset log missing", _without(last))
    yield Fault("older copy of the last offset log", _as(last, lambda text: world.files[before]))
    yield Fault("another topic's offset log", _as(last, lambda text: text.replace(TOPIC, "payments")))
    yield Fault("last offset log flipped", _as(last, _flip(0)), torn)
    for share in (0.0, 0.01, 0.5, 0.95):
        yield Fault(f"last offset log cut at {share:.0%}", _as(last, lambda text, s=share: text[: int(len(text) * s)]), torn)
    yield Fault("last commit log empty", _as(commits[-1], lambda text: ""), torn)
    yield Fault("last commit log missing", _without(commits[-1]))


def _dropping(prefix: str) -> Break:
    def breaks(world: World) -> None:
        for name in [name for name in world.files if name.startswith(prefix)]:
            del world.files[name]

    return breaks


# --- tables ------------------------------------------------------------------------------------------------------


def _table_faults(world: World) -> Iterator[Fault]:
    names = [table.id for table in world.spec.tables] + [world.spec.quarantine_table.id]
    for number, name in enumerate(names):
        is_quarantine = number == len(names) - 1
        for what, breaks, rule in _damages(is_delta=name.startswith("delta")):
            cautious = "a start knows from the targets what is quarantined" if is_quarantine and "ledger" in rule else ""
            yield Fault(f"{name}: {what}", _on(name, breaks), frozenset({rule} if rule else ()), cautious)
        dropped = frozenset({"table-dropped"}) if is_quarantine or _landed_by_the_last(world) else frozenset()
        if dropped:
            yield Fault(f"{name}: dropped", _on(name, _drop), dropped, cautious="the quarantine may be complete by chance")
        older = frozenset({"quarantine-behind"} if is_quarantine and world.phase not in OPENING else ())
        yield Fault(f"{name}: an older copy of the whole table", _on(name, _older_copy), older)
        other = frozenset({"topic-recreated", "tables-disagree"})
        yield Fault(f"{name}: another incarnation of the topic", _on(name, _other_incarnation), other)
        if not is_quarantine:
            yield Fault(f"{name}: a hole below the mark", _on(name, _hole), frozenset({"interior-gap"}))


Damage = tuple[str, Callable[[Stored], None], str]


def _damages(*, is_delta: bool) -> Iterator[Damage]:
    yield "rows without an entry", _without_entries, "rows-without-entry"
    yield "newest entry cut", lambda stored: stored.change(-1, entry=str(stored.commits[-1].entry)[:-7]), "entry-unreadable"
    yield "newest entry forged", lambda stored: stored.change(-1, entry=_forged(stored.commits[-1])), "entry-unreadable"
    yield "another pipeline's", _foreign, "foreign-table"
    yield "does not answer", lambda stored: setattr(stored, "locked", True), "table-unreadable"
    yield "carried on from before its rows", _carried, "ledger-behind-rows"
    if is_delta:
        yield "restored by hand", _restored, "table-restored"
        yield "newest entries gone, txn there", _txn_ahead, "ledger-behind-txn"
    else:
        yield "rolled back by hand", lambda stored: stored.commits.pop() and None, ""  # type: ignore[func-returns-value]


def _landed_by_the_last(world: World) -> bool:
    return bool(json.loads(world.files["progress.json"])["tables"])


def _on(table: str, breaks: Callable[[Stored], None]) -> Break:
    return lambda world: breaks(world.lake.stored[table])


def _without_entries(stored: Stored) -> None:
    stored.commits = [replace(commit, entry=None) for commit in stored.commits]


def _forged(commit: Commit) -> str:
    return str(commit.entry).replace('"epoch":', '"epoch":-')


def _foreign(stored: Stored) -> None:
    stored.commits = [
        replace(c, entry=str(c.entry).replace('"pipeline":"orders"', '"pipeline":"payments"')) for c in stored.commits
    ]


def _drop(stored: Stored) -> None:
    stored.exists, stored.commits = False, []


def _older_copy(stored: Stored) -> None:
    del stored.commits[4:]


def _restored(stored: Stored) -> None:
    """Rows are taken away, their entries stay."""
    stored.commits = [replace(commit, rows=commit.rows if at < 3 else ()) for at, commit in enumerate(stored.commits)]
    stored.commits.append(Commit(operation="RESTORE"))


def _carried(stored: Stored) -> None:
    """Maintenance carried on the first batch's entry; everything else was expired, its rows stay."""
    kept = [replace(commit, entry=None) for commit in stored.commits]
    stored.commits = [*kept, Commit(entry=encode(entry("carry", 1, BATCH)))]


def _txn_ahead(stored: Stored) -> None:
    """The newest commits lost their entries; a later application's txn is still remembered."""
    stored.commits = [*stored.commits[:3], *(replace(commit, entry=None) for commit in stored.commits[3:])]
    stored.change(-1, txn_epoch=7)


def _hole(stored: Stored) -> None:
    """The second batch is missing, the third is there."""
    holed = {
        TOPIC: span(0, 0)[TOPIC].model_copy(
            update={"partitions": dict.fromkeys(PARTITIONS, ((0, BATCH), (2 * BATCH, 3 * BATCH)))}
        )
    }
    del stored.commits[3:]
    landed = entry("land", 2, 3 * BATCH, start=2 * BATCH).model_copy(update={"coverage": holed})
    stored.add(landed, rows(2 * BATCH, 3 * BATCH, bad=False))


def _other_incarnation(stored: Stored) -> None:
    stored.commits = [replace(c, entry=str(c.entry).replace(TOPIC_ID, "id-old")) for c in stored.commits]


# --- Kafka -------------------------------------------------------------------------------------------------------


def _kafka_faults() -> Iterator[Fault]:
    yield Fault("broker away", lambda w: w.look.update(problem="unavailable", topics={}), frozenset({"broker-unavailable"}))
    yield Fault("no secret", lambda w: w.look.update(problem="missing_secret", topics={}), frozenset({"kafka-refused"}))
    yield Fault("topic deleted", lambda w: w.topics.update({TOPIC: None}), frozenset({"topic-missing"}))
    for what, latest in (("smaller", 5), ("as large", 2 * BATCH), ("grown past", 500)):
        yield Fault(f"topic recreated, {what}", _topic("id-2", 0, latest), frozenset({"topic-recreated"}))
    for by in (1, 7):
        yield Fault(f"retention passed by {by}", _retention(by), frozenset({"retention-passed"}))
    yield Fault("retention up to the mark", _retention(0))
    yield Fault("topic cut", _topic(TOPIC_ID, EARLIEST, 2 * BATCH - 5), frozenset({"offsets-beyond-end"}))
    yield Fault(
        "a partition is gone",
        _partitions({0: EARLIEST}, {0: LATEST}),
        frozenset({"offsets-beyond-end"}),
        cautious="Kafka takes no partition away: this is another broker",
    )
    earliest, latest = dict.fromkeys(PARTITIONS, EARLIEST), dict.fromkeys(PARTITIONS, LATEST)
    yield Fault("a partition was added", _partitions({**earliest, 2: 0}, {**latest, 2: 20}))
    cut = frozenset({"unseen-partition-cut"})
    yield Fault("a partition was added and cut", _partitions({**earliest, 2: 5}, {**latest, 2: 20}), cut)


def _topic(topic_id: str, earliest: int, latest: int) -> Break:
    return lambda world: world.topics.update({TOPIC: topic_facts(topic_id, earliest, latest)})


def _partitions(earliest: dict[int, int], latest: dict[int, int]) -> Break:
    return lambda world: world.topics.update({TOPIC: TopicFacts(TOPIC_ID, earliest, latest)})


def _retention(by: int) -> Break:
    """Retention deletes up to the lowest mark, and ``by`` offsets more."""

    def breaks(world: World) -> None:
        lowest = min(mark_of(stored) for stored in world.targets)
        world.topics[TOPIC] = topic_facts(earliest=lowest + by)

    return breaks


def mark_of(stored: Stored) -> int:
    """Return where the table's newest entry ends, in partition 0."""
    newest = decode(stored.commits[-1].entry, "the newest")
    assert newest is not None
    return newest.coverage[TOPIC].partitions[0][-1][1]


# --- applications ------------------------------------------------------------------------------------------------


def _application_faults(world: World) -> Iterator[Fault]:
    now = world.now
    yield Fault("lives and lands", lambda w: make_alive(w), lives=True)
    yield Fault(
        "lives and waits", _living(state="waiting", waiting_for="Kafka"), frozenset({"application-waiting"}), lives=True
    )
    yield Fault("lives and starts", _living(state="starting"), frozenset({"application-starting"}), lives=True)
    yield Fault("lives and is silent", _living(updated_at=now - 300), frozenset({"stalled"}), lives=True)
    quiet = _living(started_at=now - 900, last_commit_at=now - 800)
    yield Fault("lives and lands nothing", _both(quiet, _waiting_since(700)), frozenset({"stalled"}), lives=True)
    yield Fault(
        "lives, its checkpoint is gone",
        _both(_living(batch=3), _dropping("checkpoints/")),
        frozenset({"checkpoint-lost"}),
        lives=True,
    )
    yield Fault("lives and lags", _both(_living(), _waiting_since(700)), frozenset({"lag"}), lives=True)
    yield Fault("two drivers", _both(_living(), _beside), frozenset({"two-drivers"}), lives=True)
    yield Fault("two state folders", _both(_living(), _older_epoch), frozenset({"two-state-folders"}), lives=True)
    for state in ("held", "stopped"):
        yield Fault(state, lambda w, s=state: w.change("desired.json", state=s, reason="audit"), frozenset({"not-wanted"}))
    ends = {"ends": ["a", "b", "c"], "at": now - 50, "reason": "a b c"}
    looping = frozenset({"crash-loop"} if world.phase in OPENING else ())
    yield Fault("a crash loop", lambda w: w.files.update({"crash-loop.json": json.dumps(ends)}), looping)
    third = {"ends": ["a", "b"], "at": now - 100, "reason": "a b"}
    yield Fault("the third barren end", lambda w: w.files.update({"crash-loop.json": json.dumps(third)}), looping)
    yield Fault("a crash loop, and a wish since", _wished_since(ends))
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


def _both(first: Break, second: Break) -> Break:
    def breaks(world: World) -> None:
        first(world)
        second(world)

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


def _wished_since(ends: dict[str, Any]) -> Break:
    def breaks(world: World) -> None:
        world.files["crash-loop.json"] = json.dumps(ends)
        world.change("desired.json", since=world.now)

    return breaks


def _never_started(world: World) -> None:
    world.files.clear()
    for stored in (*world.targets, world.quarantine):
        _drop(stored)
    world.topics[TOPIC] = topic_facts(earliest=0)


# --- numbers -----------------------------------------------------------------------------------------------------


def _number_faults() -> Iterator[Fault]:
    soon = {TOPIC: Retention(milliseconds=61_000)}
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
    yield Fault("a number is not to be had", lambda w: w.look.update(unread=("no time",)), frozenset({"facts-unread"}))


def _full(world: World) -> None:
    """Produced faster than the log is deep."""
    world.look["retention"] = {TOPIC: Retention(bytes=1000)}
    world.look["waiting"] = {(TOPIC, p): Waiting(None, 100.0) for p in PARTITIONS}
