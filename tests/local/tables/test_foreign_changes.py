"""Commits of others, by kind: the stream goes on after each; those that change rows are remembered until a person says so."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.support.tables.foreign_hands import commit_without_entry, foreign_iceberg
from tests.support.tables.local_tables import (  # noqa: F401
    PIPELINE,
    Lander,
    app_fixture,
    landed_offsets,
    lander,
    pipeline_over,
    rows,
)
from tests.support.tables.maintenance import carry
from tests.support.tables.restoring import reset

from lakebound.inspection.doctor.pipeline.ledger_facts import read_ledgers
from lakebound.ledger.entry import Entry, carried
from lakebound.ledger.foreign_changes import MOST_REMEMBERED, ForeignChange, remembered
from lakebound.operations.acknowledge import NothingToAcknowledgeError, acknowledge
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places
from lakebound.tables.table import open_table

pytestmark = pytest.mark.parametrize("spec", ["delta", "iceberg"], indirect=True)

Hand = Callable[[TableSpec, Places], None]


def plain(spec: TableSpec, at: Places) -> DeltaTable:
    return DeltaTable(at.folder(spec).address)


def append_rows(spec: TableSpec, at: Places) -> None:
    more = rows(100, 103)
    if spec.format == "delta":
        write_deltalake(plain(spec, at), more, mode="append")
    else:
        foreign = foreign_iceberg(spec, at)
        foreign.append(more.cast(open_table(spec, at).schema()))


def delete_rows(spec: TableSpec, at: Places) -> None:
    if spec.format == "delta":
        plain(spec, at).delete("id < 4")
    else:
        foreign_iceberg(spec, at).delete("id < 4")


def overwrite(spec: TableSpec, at: Places) -> None:
    few = rows(0, 5)
    if spec.format == "delta":
        write_deltalake(plain(spec, at), few, mode="overwrite")
    else:
        foreign_iceberg(spec, at).overwrite(few.cast(open_table(spec, at).schema()))


def update(spec: TableSpec, at: Places) -> None:
    if spec.format == "delta":
        plain(spec, at).update(predicate="id = 3", new_values={"city": "'elsewhere'"})
    else:
        foreign = foreign_iceberg(spec, at)
        held = foreign.scan().to_arrow()
        changed = held.set_column(held.schema.get_field_index("city"), "city", pa.array(["elsewhere"] * held.num_rows))
        foreign.overwrite(changed)


def optimize(spec: TableSpec, at: Places) -> None:
    if spec.format == "delta":
        plain(spec, at).optimize.compact()
    else:
        commit_without_entry(spec, at)


def set_properties(spec: TableSpec, at: Places) -> None:
    if spec.format == "delta":
        plain(spec, at).alter.set_table_description("by a colleague")
    else:
        with foreign_iceberg(spec, at).transaction() as transaction:
            transaction.set_properties({"comment": "by a colleague"})


def known(spec: TableSpec, at: Places) -> tuple[ForeignChange, ...]:
    """What the doctor sees."""
    pipeline = pipeline_over(spec)
    return read_ledgers(pipeline, at)[0].foreign_changes


CHANGES = [(append_rows, 3, 0), (delete_rows, 0, 4), (overwrite, None, None), (update, None, None)]


@pytest.mark.parametrize(("hand", "added", "removed"), CHANGES, ids=[one[0].__name__ for one in CHANGES])
def test_a_change_of_rows_does_not_stop_the_stream_and_is_remembered_by_what_follows(
    app: Lander, spec: TableSpec, at: Places, hand: Hand, added: int | None, removed: int | None
) -> None:
    hand(spec, at)
    (before,) = known(spec, at)[-1:]
    assert before.operation and before.at_ms > 1_600_000_000_000
    if added is not None:
        assert (before.added, before.removed) == (added, removed)
    seen = known(spec, at)
    app.land(10, 20)
    app.land(20, 30)
    assert known(spec, at) == seen, "the entries remember it"
    later = lander(spec, at, epoch=2)
    later.open()
    assert known(spec, at) == seen
    assert set(range(10, 30)) <= set(landed_offsets(later.table))


@pytest.mark.parametrize("hand", [optimize, set_properties], ids=lambda hand: hand.__name__)
def test_a_commit_that_changes_no_row_is_silent(app: Lander, spec: TableSpec, at: Places, hand: Hand) -> None:
    app.land(10, 20)
    hand(spec, at)
    assert known(spec, at) == ()
    app.land(20, 30)
    assert known(spec, at) == () and landed_offsets(app.table) == list(range(30))


def test_it_is_remembered_beneath_a_replay_and_beneath_maintenance(app: Lander, spec: TableSpec, at: Places) -> None:
    append_rows(spec, at)
    entry = open_table(spec, at).read_ledger().entry
    assert entry is not None
    carry(spec, at, carried(entry))
    (found,) = known(spec, at)
    lander(spec, at).land(40, 50, kind="replay")
    delete_rows(spec, at)
    app.land(10, 20)
    first, *others = known(spec, at)
    assert first.version == found.version and others


def test_it_ends_when_it_is_acknowledged_also_beside_a_running_stream(app: Lander, spec: TableSpec, at: Places) -> None:
    pipeline = pipeline_over(spec)
    with pytest.raises(NothingToAcknowledgeError):
        acknowledge(pipeline, spec, at)
    append_rows(spec, at)
    app.land(10, 20)
    delete_rows(spec, at)
    first, *others = known(spec, at)
    assert others
    with pytest.raises(NothingToAcknowledgeError):
        acknowledge(pipeline, spec, at, ["0"])
    assert acknowledge(pipeline, spec, at, [first.version]) == (first,)
    assert list(known(spec, at)) == others
    app.land(20, 30)
    assert list(known(spec, at)) == others
    acknowledge(pipeline, spec, at)
    app.land(30, 40)
    assert known(spec, at) == () and app.view.entry is not None and app.view.entry.foreign_changes == ()


def test_what_was_acknowledged_is_counted_still(app: Lander, spec: TableSpec, at: Places) -> None:
    delete_rows(spec, at)
    assert open_table(spec, at).read_ledger().changes_seen == 1
    app.land(10, 20)
    acknowledge(pipeline_over(spec), spec, at)
    append_rows(spec, at)
    assert open_table(spec, at).read_ledger().changes_seen == 2
    app.land(20, 30)
    entry = open_table(spec, at).read_ledger().entry
    assert entry is not None
    carry(spec, at, carried(entry))
    assert open_table(spec, at).read_ledger().changes_seen == 2


def test_it_ends_with_a_rewind_to_before_it(app: Lander, spec: TableSpec, at: Places) -> None:
    before = app.table.read_ledger().version
    append_rows(spec, at)
    app.land(10, 20)
    assert known(spec, at)
    open_table(spec, at).restore(before, reset(1))
    assert known(spec, at) == ()


def test_an_entry_remembers_the_newest_of_many(spec: TableSpec) -> None:
    many = [ForeignChange(version=str(number)) for number in range(50)]
    kept = remembered(many[:30], many[25:], {"49"})
    assert [one.version for one in kept] == [str(number) for number in range(49 - MOST_REMEMBERED, 49)]
    entry = Entry(kind="land", pipeline=PIPELINE, epoch=1, commit="c", foreign_changes=kept)
    assert carried(entry).foreign_changes == kept
