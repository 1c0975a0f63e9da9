"""The recipe for consumers of rows in real time, as the page prints it: each row is handled once, whatever comes again."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from tests.support.topics.reading import ReadMessage
from tests.support.topics.recipe import handled

SOURCES = (("shop.orders", 0), ("shop.orders", 1), ("shop.returns", 0))
TARGET_PARTITIONS = 3


@pytest.mark.parametrize("seed", range(40))
def test_each_row_is_handled_once_whatever_comes_again(seed: int) -> None:
    chance = random.Random(seed)
    rows = {source: made_rows(source, chance) for source in SOURCES}
    received = runs(rows, chance)
    places = [message.source for message in received]
    counts = Counter(place.rpartition("/")[0] for place in set(places))
    assert len(places) > len(set(places)), "nothing came twice: nothing was tested"
    assert max(counts.values()) > 1, "no record has several rows: nothing was tested"
    taken = [message.source for message in handled(received)]
    assert sorted(taken) == sorted(set(places))


def made_rows(source: tuple[str, int], chance: random.Random) -> list[ReadMessage]:
    """Return the rows of a source partition, in its order; some records have none, some have several."""
    topic, partition = source
    return [
        ReadMessage(chance.randrange(TARGET_PARTITIONS), b"key", b"{}", f"{topic}/{partition}/{offset}/{ordinal}")
        for offset in range(30)
        for ordinal in range(chance.choice((0, 1, 1, 3)))
    ]


def runs(rows: dict[tuple[str, int], list[ReadMessage]], chance: random.Random) -> list[ReadMessage]:
    """Return what arrives over several runs: each begins at the newest entry, which is behind what the killed one had sent."""
    received: list[ReadMessage] = []
    entry = dict.fromkeys(rows, 0)
    for is_last in (False, False, False, True):
        at = dict(entry)
        end = {source: len(own) if is_last else chance.randint(entry[source], len(own)) for source, own in rows.items()}
        while open_ := [source for source in rows if at[source] < end[source]]:
            source = chance.choice(open_)
            received.append(rows[source][at[source]])
            at[source] += 1
        # An entry covers whole records.
        entry = {source: whole(rows[source], chance.randint(entry[source], end[source])) for source in rows}
    return received


def whole(own: list[ReadMessage], at: int) -> int:
    """Return the nearest place at or before ``at`` where a record begins."""
    while 0 < at < len(own) and not own[at].source.endswith("/0"):
        at -= 1
    return at
