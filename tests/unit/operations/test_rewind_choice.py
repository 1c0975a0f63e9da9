"""Which version a rewind, or the undoing of one, goes back to, on facts alone. Pure."""

from __future__ import annotations

import pytest
from tests.support.tables.local_tables import offsets
from tests.support.worlds.rewinds import REWIND, entry

from lakebound.ledger.entry import Entry
from lakebound.operations.recovery.rewind.choice import ahead_of_thinning, last_rewind, left_by_earlier_epochs, split_at
from lakebound.tables.table import TableVersion


def history(*entries: Entry | None) -> list[TableVersion]:
    """Return versions newest first, of entries oldest first, a second apart."""
    return [TableVersion(str(number), number * 1000, one) for number, one in enumerate(entries)][::-1]


def test_the_version_of_a_time_is_the_newest_at_or_before_it() -> None:
    versions = history(entry("genesis"), entry(), None, entry())
    newer, version = split_at(versions, 2000)
    assert version is not None and (version.version, [one.version for one in newer]) == ("2", ["3"])
    assert split_at(versions, 1999)[1] == versions[2]
    assert split_at(versions, -1) == (versions, None)


def landing(start: int, end: int) -> Entry:
    """Return the entry of a commit that lands an interval on top of all before it."""
    return entry(coverage=offsets(0, end), range=offsets(start, end))


def test_where_its_past_is_thinned_the_quarantine_goes_ahead_of_the_tables_and_never_behind_them() -> None:
    """Batches of ten. Of the quarantine's commits of 10 to 50 and of the tables' of 10 to 40, the last of a second is kept."""
    *_, second_before = history(landing(0, 10))
    newer = history(landing(0, 10), landing(40, 50))[:1]
    assert ahead_of_thinning(second_before, offsets(0, 10), newer, [offsets(0, 40)]) == newer[0]
    assert ahead_of_thinning(second_before, offsets(0, 10), newer, [offsets(0, 5), offsets(0, 20)]) == newer[0]
    assert ahead_of_thinning(second_before, offsets(0, 10), newer, [offsets(0, 10)]) == second_before, "it holds all of it"
    assert ahead_of_thinning(second_before, offsets(0, 10), [], [offsets(0, 40)]) == second_before, "nothing came after it"


def test_where_nothing_is_thinned_the_quarantine_goes_to_its_version_of_the_time() -> None:
    versions = history(landing(0, 10), landing(10, 50), landing(50, 60))
    assert ahead_of_thinning(versions[2], offsets(0, 10), versions[:2], [offsets(0, 40)]) == versions[2]


def test_versions_older_than_the_one_are_not_read() -> None:
    def versions() -> object:
        yield from history(entry(), entry())
        raise AssertionError("read on")

    assert split_at(versions(), 500)[1] is not None  # type: ignore[arg-type]


def test_the_quarantine_keeps_what_an_earlier_application_with_a_fast_clock_left() -> None:
    """The table goes back to a version of epoch 2, so all of epoch 1 stays in it."""
    newer = history(entry(epoch=1, quarantined=3), entry("open", epoch=2), entry(epoch=2, quarantined=1))
    found = left_by_earlier_epochs(newer, 2)
    assert found is not None and found.version == "0"
    assert left_by_earlier_epochs(newer, 1) is None
    assert left_by_earlier_epochs([], 2) is None


def rewound(plan: str = REWIND, epoch: int = 2) -> Entry:
    return entry("reset", epoch, rewind=plan)


def undone(plan: str = REWIND) -> Entry:
    return entry("reset", 3, undoes=plan)


@pytest.mark.parametrize(
    ("entries", "before", "is_undone"),
    [
        ([entry(), entry(), rewound()], "1", False),
        ([entry(), entry(), rewound(), entry("open", 3), entry(), entry()], "1", False),
        ([entry(), None, rewound(), None, entry("carry")], "1", False),
        ([entry(), rewound(), entry("open"), None, rewound(epoch=3)], "0", False),
        ([entry(), rewound(), entry(), rewound(epoch=3)], "2", False),
        ([entry(), rewound("other"), rewound()], "1", False),
        ([entry(), rewound(), entry(), undone(), entry()], "0", True),
        ([entry(), rewound(), undone(), undone()], "0", True),
        ([entry(), rewound(), undone(), entry(), rewound(epoch=4)], "3", False),
        ([undone()], None, True),
        ([rewound()], None, False),
    ],
    ids=[
        "at once",
        "after more landed",
        "beside the commits of others",
        "applied twice with nothing landed between",
        "applied twice with a batch between",
        "after another rewind",
        "undone",
        "undone twice",
        "rewound again after it was undone",
        "undone, and no longer kept",
        "no longer kept",
    ],
)
def test_what_a_rewind_left(entries: list[Entry | None], before: str | None, is_undone: bool) -> None:
    last = last_rewind(history(*entries))
    assert last is not None and last.plan == REWIND
    assert (last.before.version if last.before else None, last.is_undone) == (before, is_undone)


@pytest.mark.parametrize("entries", [[], [entry("genesis"), entry()], [entry(), entry("reset"), entry()]])
def test_no_rewind(entries: list[Entry | None]) -> None:
    assert last_rewind(history(*entries)) is None
