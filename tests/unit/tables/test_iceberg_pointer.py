"""Which metadata file is a table's newest, from what the files say of each other."""

from __future__ import annotations

import pytest

from lakebound.tables.iceberg.pointer import Behind, MetadataFile, judge, number_of

KEPT = 4
"""How many earlier files a file names, and how many are not deleted."""


def name(number: int, branch: str = "a") -> str:
    return f"{number:05d}-{branch}.metadata.json"


def history(end: int, branch: str = "a", on: list[str] | None = None, table: str = "t") -> list[MetadataFile]:
    """Return every file that one history wrote, on the names of an earlier one."""
    names, files = list(on or []), []
    for number in range(len(names), end + 1):
        names.append(name(number, branch))
        files.append(
            MetadataFile(names[-1], number, table, tuple(names[:-1][-KEPT:]), frozenset(range(number + 1)), current=number)
        )
    return files


def left(files: list[MetadataFile], pointer: str, *others: MetadataFile) -> Behind | None:
    """Judge what commits leave in the folder: the newest and those that it names, and files of others."""
    kept = [*files[-KEPT - 1 :], *others]
    return judge(pointer, [file for file in kept if file.number >= number_of(pointer)])


A = history(9)
NEWEST = Behind(name(9), (name(9),))


def written_on(parent: int, branch: str = "lost") -> MetadataFile:
    """Return a file that a writer wrote after another one, and whose commit is not known."""
    return MetadataFile(name(parent + 1, branch), parent + 1, "t", tuple(file.name for file in A[: parent + 1])[-KEPT:])


def test_the_newest_is_right() -> None:
    assert left(A, name(9)) is None


@pytest.mark.parametrize("number", range(8))
def test_an_older_one_is_behind_whether_or_not_it_is_still_there(number: int) -> None:
    assert left(A, name(number)) == NEWEST


def test_the_last_but_one_may_be_all_that_was_committed() -> None:
    assert left(A, name(8)) is None


def test_a_table_of_which_everything_is_left_knows_the_way_from_the_first() -> None:
    assert judge(name(0), A) == NEWEST


def test_what_a_killed_writer_left_on_the_newest_is_no_finding() -> None:
    assert left(A, name(9), written_on(9)) is None
    assert left(A, name(9), written_on(9), written_on(9, "lost-too")) is None


@pytest.mark.parametrize("number", [2, 7])
@pytest.mark.parametrize("parent", [3, 6, 7, 8])
def test_what_a_killed_writer_left_does_not_hide_the_newest(number: int, parent: int) -> None:
    # Of two files on the same one, neither may have been committed.
    expected = NEWEST if parent < 8 else Behind(name(8), (name(8),))
    assert left(A, name(number), written_on(parent)) == expected


def test_two_histories_are_for_a_person() -> None:
    on = [file.name for file in A[:4]]
    forked = history(6, "b", on=on)
    both = [*A, *forked]
    names = (name(6, "b"), name(9))
    assert judge(name(3), [file for file in both if file.number >= 3]) == Behind(None, names)
    # The catalog is on the shorter one: it went on from the restored pointer.
    found = judge(name(5, "b"), [file for file in both if file.number >= 5])
    assert found is not None and found.newest is None and name(9) in found.names
    # Its own file is gone, too.
    assert judge(name(2), [file for file in both if file.number >= 4]) == Behind(None, names)


def test_a_history_that_the_catalog_has_outgrown_is_let_be() -> None:
    forked = history(5, "b", on=[file.name for file in A[:4]])
    assert judge(name(9), [file for file in [*A, *forked] if file.number >= 9]) is None


def test_the_pointer_of_another_history_whose_log_no_longer_meets_is_told_by_its_snapshots() -> None:
    own = MetadataFile(name(1, "b"), 1, "t", (name(0),), frozenset({0, 77}), current=77)
    found = judge(own.name, [own, *A[-KEPT - 1 :]])
    assert found is not None and found.newest is None


def test_a_table_of_the_same_folder_that_was_dropped_is_another() -> None:
    old = history(30, "old", table="dropped")
    assert left(A, name(9), *old[-KEPT - 1 :]) is None
    assert left(A, name(6), *old[-KEPT - 1 :]) == NEWEST
    gone = left(A, name(2), *old[-KEPT - 1 :])
    assert gone is not None and gone.newest is None, "which of them the catalog named is not known"


def test_names_that_count_nothing_are_not_compared() -> None:
    assert number_of("v3.metadata.json") == -1
    assert judge("v3.metadata.json", []) is None
