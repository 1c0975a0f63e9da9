"""What can be wrong with the tables of a world, and with its topic."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace

from lakebound.ledger.entry import decode, encode
from lakebound.ledger.redo_progress import RedoProgress
from lakebound.ledger.topics import TopicFacts
from tests.support.worlds.memory_tables import Commit, Stored
from tests.support.worlds.pipeline_fault import Break, Fault
from tests.support.worlds.pipeline_worlds import (
    BATCH,
    EARLIEST,
    LATEST,
    OPENING,
    PARTITIONS,
    TOPIC,
    TOPIC_ID,
    World,
    entry,
    rows,
    span,
    topic_facts,
)


def table_faults(world: World) -> Iterator[Fault]:
    names = [table.id for table in world.spec.tables] + [world.spec.quarantine_table.id]
    for number, name in enumerate(names):
        is_quarantine = number == len(names) - 1
        for what, breaks, rule in _damages(is_delta=name.startswith("delta")):
            yield Fault(f"{name}: {what}", _on(name, breaks), frozenset({rule} if rule else ()))
        dropped = frozenset({"table-dropped"}) if is_quarantine or landed_by_the_last(world) else frozenset()
        if dropped:
            yield Fault(f"{name}: dropped", _on(name, drop), dropped, cautious="the quarantine may be complete by chance")
        older = frozenset({"quarantine-behind"} if is_quarantine and world.phase not in OPENING else ())
        yield Fault(f"{name}: an older copy of the whole table", _on(name, _older_copy), older)
        other = frozenset({"topic-recreated", "tables-disagree"})
        yield Fault(f"{name}: another incarnation of the topic", _on(name, _other_incarnation), other)
        if not is_quarantine:
            yield Fault(f"{name}: a redo that ended early", _on(name, _half_redone), frozenset({"redo-unfinished"}))
            yield Fault(f"{name}: a hole below the mark", _on(name, _hole), frozenset({"interior-gap"}))


Damage = tuple[str, Callable[[Stored], None], str]


def _damages(*, is_delta: bool) -> Iterator[Damage]:
    yield "rows without an entry", _without_entries, "rows-without-entry"
    yield "newest entry cut", lambda stored: stored.change(-1, entry=str(stored.commits[-1].entry)[:-7]), "entry-unreadable"
    yield "newest entry forged", lambda stored: stored.change(-1, entry=_forged(stored.commits[-1])), "entry-unreadable"
    yield "of a later version", lambda stored: stored.change(-1, entry=_newer(stored.commits[-1])), "entry-newer"
    yield "another pipeline's", _foreign, "foreign-table"
    yield "does not answer", lambda stored: setattr(stored, "locked", True), "table-unreadable"
    yield "carried on from before its rows", _carried, "ledger-behind-rows"
    yield "given a feature", lambda stored: setattr(stored, "feature", "columnMapping"), "table-feature"
    yield "changed by others", lambda stored: stored.commits.append(Commit(operation="UPDATE")), "rows-changed-by-others"
    if is_delta:
        yield "restored by hand", _restored, "table-restored"
        yield "newest entries gone, txn there", _txn_ahead, "ledger-behind-txn"
    else:
        yield "an older catalog names it", lambda stored: setattr(stored, "older", True), "catalog-behind"
        yield "rolled back by hand", lambda stored: stored.commits.pop() and None, ""  # type: ignore[func-returns-value]


def landed_by_the_last(world: World) -> bool:
    return bool(json.loads(world.files["progress.json"])["tables"])


def _on(table: str, breaks: Callable[[Stored], None]) -> Break:
    return lambda world: breaks(world.lake.stored[table])


def _without_entries(stored: Stored) -> None:
    stored.commits = [replace(commit, entry=None) for commit in stored.commits]


def _forged(commit: Commit) -> str:
    return str(commit.entry).replace('"epoch":', '"epoch":-')


def _newer(commit: Commit) -> str:
    return str(commit.entry).replace('"epoch":', '"requires":["holes"],"epoch":')


def _foreign(stored: Stored) -> None:
    stored.commits = [
        replace(c, entry=str(c.entry).replace('"pipeline":"orders"', '"pipeline":"payments"')) for c in stored.commits
    ]


def _half_redone(stored: Stored) -> None:
    found = decode(stored.commits[-1].entry, "")
    assert found is not None
    progress = RedoProgress(plan="0123456789ab", left=5, at_ms=1)
    stored.change(-1, entry=encode(found.model_copy(update={"newest_redo": "r", "redo_progress": progress})))


def drop(stored: Stored) -> None:
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


def kafka_faults() -> Iterator[Fault]:
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
