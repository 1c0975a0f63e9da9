"""A table's history as a plain model: what its rows and its quarantine are after each commit, and what the ledger says of it.

The model knows nothing of how a proof is made: of each offset it keeps what the newest commit has made of it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lakebound.inspection.proof.facts import TableAsFound
from lakebound.inspection.proof.judgement import judge
from lakebound.inspection.proof.result import Proof
from lakebound.ledger.entry import Entry, Offsets
from lakebound.ledger.topics import TopicFacts
from lakebound.tables.table import CommittedEntry
from tests.support.worlds.proof_world import PIPELINE, QUARANTINE, TARGET, TOPIC, TOPIC_ID, Row, born, kafka_rows, offsets

FATES = ("one", "one", "one", "three", "filtered", "bad")
ROWS = {"one": 1, "three": 3, "filtered": 0, "bad": 0}


@dataclass(frozen=True)
class State:
    """What the table holds after a commit.

    Attributes:
        end: Offsets below it are covered.
        fates: What each covered offset became, by the newest decision.
        released: How many offsets were decided again.
        redos: Ids of the commits of the redos that stand, oldest first.
        bad: Offsets in quarantine; one that landed after all stays there.
        quarantine_covers: Offsets that the quarantine's ledger covers: it hears of batches without bad records later, or never.
        recalled: How many offsets were put into quarantine after their batch.
    """

    end: int = 0
    fates: dict[int, str] = field(default_factory=dict)
    released: int = 0
    redos: tuple[str, ...] = ()
    bad: frozenset[int] = frozenset()
    quarantine_covers: frozenset[int] = frozenset()
    recalled: int = 0

    def rows(self) -> list[Row]:
        """Return the rows, as they must be."""
        return [(0, offset, ordinal) for offset, fate in sorted(self.fates.items()) for ordinal in range(ROWS[fate])]


class RedoWorld:
    """One table of one partition, with its quarantine; every operation is a commit."""

    def __init__(self, seed: int) -> None:
        self.choice = random.Random(seed)
        self.states, self.entries = [State()], [born()]
        self.quarantine = [born()]
        self.before = [0]
        self.changes_seen: int | None = None

    @property
    def now(self) -> State:
        """What the table holds."""
        return self.states[-1]

    def land(self, number: int) -> None:
        """Land new records."""
        start, fates = self.now.end, self._fates(number)
        made = dict(zip(range(start, start + number), fates, strict=True))
        before = self._quarantined(made)
        span = self._spans(made)
        state = replace(before, end=start + number, fates={**self.now.fates, **made})
        self._commit("land", state, range=span, read=number, **counts(fates))

    def redo(self, start: int, end: int) -> None:
        """Make the rows of a range again, otherwise than they were."""
        old = {offset: self.now.fates[offset] for offset in range(start, end)}
        made = dict(zip(old, self._fates(len(old)), strict=True))
        from_quarantine = sum(offset in self.now.bad and ROWS[fate] > 0 for offset, fate in made.items())
        before = self._quarantined_anew(made)
        commit = f"redo-{len(self.entries)}"
        state = replace(
            before,
            fates={**self.now.fates, **made},
            released=self.now.released + from_quarantine,
            redos=(*self.now.redos, commit),
        )
        self._commit(
            "redo",
            state,
            commit=commit,
            redoes=self._spans(made),
            redo_before=self.now.redos[-1] if self.now.redos else None,
            from_quarantine=from_quarantine,
            erases=sum(ROWS[fate] for fate in old.values()),
            read=len(made),
            **counts(made.values()),
        )

    def die_before_redo(self, start: int, end: int) -> None:
        """Put newly bad records of a range into quarantine, as a redo does that is killed before it commits to the table."""
        made = dict(zip(range(start, end), self._fates(end - start), strict=True))
        self.states[-1] = self._quarantined_anew(made)

    def lose(self, chosen: Iterable[int]) -> None:
        """Have somebody delete the rows of some records by SQL."""
        self.states[-1] = replace(self.now, fates={**self.now.fates, **dict.fromkeys(chosen, "filtered")})
        self.changes_seen = (self.changes_seen or 0) + 1

    def release(self, number: int) -> None:
        """Land some of the records that are bad, or find that they give no row."""
        bad = [offset for offset, fate in self.now.fates.items() if fate == "bad"]
        chosen = self.choice.sample(bad, min(number, len(bad)))
        if not chosen:
            return
        made = {offset: self.choice.choice(("one", "three", "filtered")) for offset in chosen}
        state = replace(self.now, fates={**self.now.fates, **made}, released=self.now.released + len(made))
        self._commit("release", state, releases=self._spans(made), read=len(made), **counts(made.values()))

    def carry(self) -> None:
        """Have maintenance write the same rows into other files."""
        self._commit("carry", self.now, carries=self.entries[-1].entry.commit)

    def rewind(self, number: int) -> None:
        """Go back to what the table and its quarantine held after a commit."""
        state = self.states[number]
        self.before.append(number)
        self._add(self.quarantine, "reset", {"coverage": self._spans(state.quarantine_covers), "released": state.recalled})
        self._commit("reset", state)

    def do_anything(self) -> str:
        """Commit something, by chance, and return what."""
        end = self.now.end
        what = (
            self.choice.choice(["land", "land", "redo", "redo", "redo", "die", "release", "carry", "rewind"]) if end else "land"
        )
        if what == "land":
            self.land(self.choice.randint(1, 8))
        elif what == "redo":
            start = self.choice.randrange(end)
            self.redo(start, self.choice.randint(start + 1, end))
        elif what == "die":
            start = self.choice.randrange(end)
            self.die_before_redo(start, self.choice.randint(start + 1, end))
        elif what == "release":
            self.release(self.choice.randint(1, 4))
        elif what == "rewind":
            self.rewind(self.choice.choice(self.lineage()))
        else:
            self.carry()
        return what

    def lineage(self) -> list[int]:
        """Return the numbers of the commits on which the table stands: a rewind goes back to one of them."""
        found, at = [0], len(self.states) - 1
        while at:
            found.append(at)
            at = self.before[at]
        return found

    def prove(self, rows: Sequence[Row] | None = None, *, deep: bool = True) -> Proof:
        """Return the proof of the table with its own rows, or with others."""
        return judge(
            PIPELINE,
            [self.target(rows), self._facts(QUARANTINE, self.quarantine, [(0, offset, 0) for offset in sorted(self.now.bad)])],
            {TOPIC: TopicFacts(TOPIC_ID, {0: 0}, {0: self.now.end + 5})},
            readable={(TOPIC, 0): np.arange(self.now.end, dtype=np.int64)} if deep else None,
        )

    def target(self, rows: Sequence[Row] | None = None) -> TableAsFound:
        """Return the table as it is found."""
        return self._facts(TARGET, self.entries, self.now.rows() if rows is None else rows)

    def _fates(self, number: int) -> list[str]:
        return [self.choice.choice(FATES) for _ in range(number)]

    def _spans(self, made: Iterable[int]) -> Offsets:
        return offsets(*((0, offset, offset + 1) for offset in made))

    def _quarantined(self, made: dict[int, str]) -> State:
        """Put the bad records of a batch into the quarantine, which hears of batches without any with the next bad ones."""
        new = frozenset(offset for offset, fate in made.items() if fate == "bad")
        every = frozenset(range(max(made, default=-1) + 1))
        return self._added("land", self.now, every - self.now.quarantine_covers, new) if new else self.now

    def _quarantined_anew(self, made: dict[int, str]) -> State:
        """Put records of a redo into the quarantine: those of offsets that it covers are recalled, if it does not have them."""
        new = frozenset(offset for offset, fate in made.items() if fate == "bad")
        if not new:
            return self.now
        fresh = frozenset(made) - self.now.quarantine_covers
        state, again = self.now, new - fresh
        if fresh:
            state = self._added("replay", state, fresh, new & fresh)
        if chosen := again - state.bad:
            state = replace(state, bad=state.bad | chosen, recalled=state.recalled + len(chosen))
            self._add(self.quarantine, "recall", self._said(state) | {"releases": self._spans(chosen)} | of_bad(chosen))
        return state

    def _added(self, kind: str, state: State, covered: frozenset[int], new: frozenset[int]) -> State:
        after = replace(state, bad=state.bad | new, quarantine_covers=state.quarantine_covers | covered)
        self._add(self.quarantine, kind, self._said(after) | {"range": self._spans(covered)} | of_bad(new))
        return after

    def _said(self, state: State) -> dict[str, Any]:
        return {"coverage": self._spans(state.quarantine_covers), "released": state.recalled}

    def _commit(self, kind: str, state: State, **body: Any) -> None:
        newest = state.redos[-1] if state.redos else ("" if self.entries[-1].entry.newest_redo else None)
        said = {"coverage": offsets((0, 0, state.end)), "released": state.released, "newest_redo": newest}
        said["changes_seen"] = self.changes_seen
        if kind != "reset":
            self.before.append(len(self.states) - 1)
        self.states.append(state)
        self._add(self.entries, kind, said | body)

    def _add(self, entries: list[CommittedEntry], kind: str, body: dict[str, Any]) -> None:
        number = len(entries)
        whole = {"kind": kind, "pipeline": PIPELINE, "epoch": 1, "commit": f"c{number}", **body}
        entries.append(CommittedEntry(str(number), number, Entry.model_validate(whole)))

    def _facts(self, table: str, entries: list[CommittedEntry], rows: Sequence[Row]) -> TableAsFound:
        newest = entries[-1].entry
        return TableAsFound(
            table,
            "quarantine" if table == QUARANTINE else "target",
            "entry",
            newest.coverage,
            tuple(reversed(entries)),
            kafka_rows(rows),
            later_coverage=newest.coverage,
            released=newest.released,
        )


def of_bad(records: frozenset[int]) -> dict[str, int]:
    """Return the counts of an entry of the quarantine."""
    return {"quarantined": len(records), "rows": len(records), "read": len(records)}


def counts(fates: Iterable[str]) -> dict[str, int]:
    """Return the counts of an entry."""
    every = list(fates)
    return {
        "filtered": every.count("filtered"),
        "quarantined": every.count("bad"),
        "landed": sum(ROWS[fate] > 0 for fate in every),
        "rows": sum(ROWS[fate] for fate in every),
    }
