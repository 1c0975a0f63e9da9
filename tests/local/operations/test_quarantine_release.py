"""Releases on real tables of both formats: each record lands once, whatever is committed meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from tests.support.tables.local_tables import landed_offsets
from tests.support.tables.quarantined import Quarantined, rows_of, span
from tests.support.waiting import HANGS_SECONDS

from lakebound.errors import CommitUnknownError, LeaseLostError
from lakebound.ledger.entry import Entry, Offsets, new_commit_id
from lakebound.operations.maintenance.engines import carried_entry
from lakebound.operations.release.candidates import as_offsets, chunks, look_at, offsets_in
from lakebound.operations.release.reading import read_index, read_records
from lakebound.operations.release.released import released_offsets
from lakebound.tables.commit import LedgerWentBackError, ReleaseOvertakenError, Waits, commit_entry
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.places import Places
from lakebound.tables.table import LedgerView, Table

BAD = [(offset, "does_not_fit", b"%d" % offset) for offset in (3, 5, 6, 40, 41, 77)]


@pytest.fixture
def world(at: Places) -> Quarantined:
    """Six bad records; everything up to 100 is covered."""
    return Quarantined(at, BAD, end=100)


def target(world: Quarantined, name: str) -> Table:
    return next(table for table in world.targets if table.spec.format == name)


def draft(*offsets: int) -> Entry:
    releases = span(*((offset, offset + 1) for offset in offsets))
    return Entry(kind="release", pipeline="orders", epoch=1, commit=new_commit_id(), releases=releases, read=len(offsets))


def commit(table: Table, view: LedgerView, entry: Entry, meanwhile: Callable[[], None], attempts: int = 3) -> Entry:
    """Commit on a view that is no longer the newest."""
    waits: list[float] = []
    meanwhile()
    done = commit_entry(
        table,
        view,
        [],
        entry,
        own_epoch=1,
        check_lease=lambda: None,
        attempts=attempts,
        waits=Waits(between=waits.append),
    )
    assert waits, "the first attempt must have been refused"
    return done.entry


@pytest.mark.parametrize("name", ["delta", "iceberg"])
class TestOneTable:
    def test_the_rows_decide_what_is_still_to_be_landed(self, world: Quarantined, name: str) -> None:
        table, quarantined = target(world, name), offsets_in(read_index(world.spec.quarantine_table, world.at))
        assert as_offsets(look_at(table, quarantined).lacking) == span((3, 4), (5, 7), (40, 42), (77, 78))
        world.release(table, 5, 41)
        held = look_at(table, quarantined)
        assert as_offsets(held.lacking) == span((3, 4), (6, 7), (40, 41), (77, 78))
        assert as_offsets(held.landed) == span((5, 6), (41, 42))
        assert (held.view.released, held.view.coverage) == (2, span((0, 100)))

    def test_a_commit_of_the_stream_meanwhile_does_no_harm(self, world: Quarantined, name: str) -> None:
        table, other = target(world, name), target(world, name)
        view = table.read_ledger()
        entry = commit(
            table, view, draft(3, 5), lambda: world.commit(other, None, range=span((100, 120)), read=20, filtered=20)
        )
        assert entry.coverage == span((0, 120)) and entry.released == 2 and entry.range == {}

    def test_another_release_meanwhile_is_noticed(self, world: Quarantined, name: str) -> None:
        table, other = target(world, name), target(world, name)
        view = table.read_ledger()
        with pytest.raises(ReleaseOvertakenError, match="another release"):
            commit(table, view, draft(3, 5), lambda: world.release(other, 5))
        assert landed_offsets(other) == [5]

    def test_a_rewind_meanwhile_is_noticed(self, world: Quarantined, name: str) -> None:
        table, other = target(world, name), target(world, name)
        view = table.read_ledger()

        def rewind() -> None:
            entry = Entry(kind="reset", pipeline="orders", epoch=2, commit=new_commit_id(), coverage=span((0, 50)))
            commit_entry(other, other.read_ledger(), [], entry, own_epoch=2, check_lease=lambda: None, attempts=1)

        with pytest.raises((LeaseLostError, LedgerWentBackError)):
            commit(table, view, draft(77), rewind)

    def test_what_is_not_covered_is_not_released(self, world: Quarantined, name: str) -> None:
        table = target(world, name)
        with pytest.raises(ReleaseOvertakenError, match="does not cover"):
            world.release(table, 3, 100)
        assert landed_offsets(table) == []

    def test_who_comes_after_carries_the_count_on(self, world: Quarantined, name: str) -> None:
        table = target(world, name)
        world.release(table, 3, 5)
        world.commit(table, None, range=span((100, 101)), read=1, filtered=1)
        assert table.read_ledger().released == 2
        assert carried_entry(table.spec, world.at).released == 2
        world.release(table, 6)
        named, unnamed = released_offsets(table.entries(), table.read_ledger().released)
        assert list(named.values()) == [((3, 4), (5, 7))] and unnamed == 0

    def test_two_releases_at_once_land_each_record_once(self, world: Quarantined, name: str) -> None:
        """Both look first, then commit; the slower one is refused, looks again and finds nothing left."""
        quarantined = offsets_in(read_index(world.spec.quarantine_table, world.at))
        both_have_looked = threading.Barrier(2)
        refused: list[str] = []

        def release() -> None:
            table = target(world, name)
            held = look_at(table, quarantined)
            both_have_looked.wait(HANGS_SECONDS)
            while held.lacking:
                wanted = as_offsets(held.lacking)
                places = [offset for array in held.lacking.values() for offset in array.tolist()]
                try:
                    land(table, held.view, places, wanted)
                    return
                except (ReleaseOvertakenError, CommitUnknownError) as exc:
                    refused.append(type(exc).__name__)
                    held = look_at(table, quarantined)

        threads = [threading.Thread(target=release) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANGS_SECONDS)
        assert landed_offsets(target(world, name)) == [3, 5, 6, 40, 41, 77]
        assert len(refused) >= 1


def land(table: Table, view: LedgerView, places: list[int], wanted: Offsets) -> None:
    """Land rows of the places on a view that was taken before."""
    files = write_data_files(rows_of(places), table.layout(), new_commit_id())
    entry = draft(*places).model_copy(update={"landed": len(places), "rows": len(places)})
    assert entry.releases == wanted
    commit_entry(
        table,
        view,
        files,
        entry,
        own_epoch=1,
        check_lease=lambda: None,
        attempts=3,
    )


def test_pieces_hold_what_any_table_lacks_and_no_more_than_asked(world: Quarantined) -> None:
    quarantined = offsets_in(read_index(world.spec.quarantine_table, world.at))
    delta, _ = world.targets
    world.release(delta, 3, 5, 6)
    held = {table.spec.id: look_at(table, quarantined) for table in world.targets}
    pieces = [[int(o) for array in piece.values() for o in array] for piece in chunks(held, 4)]
    assert pieces == [[3, 5, 6, 40], [41, 77]]


def test_only_the_records_that_are_asked_for_are_read(world: Quarantined) -> None:
    quarantined = offsets_in(read_index(world.spec.quarantine_table, world.at))
    wanted = {key: array[1:3] for key, array in quarantined.items()}
    found = read_records(world.spec.quarantine_table, world.at, wanted, ["does_not_fit"])
    assert found["value"].to_pylist() == [b"5", b"6"]
    assert read_records(world.spec.quarantine_table, world.at, wanted, ["null_value"]).num_rows == 0
