"""A redo is undone in real tables of both formats: the very rows that it replaced are back, and what came since stays."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import takewhile

import pyarrow as pa
import pytest
from tests.support.streams.long_form import examples
from tests.support.tables.compacting import compact
from tests.support.tables.foreign_hands import foreign_iceberg
from tests.support.tables.local_tables import PIPELINE, offsets, rows
from tests.support.tables.redoing import LANDED, Scene, dies_at, scene_fixture  # noqa: F401
from tests.support.tables.rewinding import StandInKafka, World, world_fixture  # noqa: F401

from lakebound import faults
from lakebound.errors import LakeboundError
from lakebound.inspection.proof.collect import prove
from lakebound.inspection.proof.history import spans_of
from lakebound.ledger.entry import Entry, new_commit_id
from lakebound.operations.acknowledge import NothingToAcknowledgeError, acknowledge
from lakebound.operations.maintenance.keep import left_by_repairs
from lakebound.operations.maintenance.table_past import past_of
from lakebound.operations.recovery.plan import PlanChangedError
from lakebound.operations.redo.replacing import NewRows, replace_rows
from lakebound.operations.redo.undo import apply_undo
from lakebound.operations.redo.undo_facts import prepare_undo
from lakebound.operations.redo.undo_plan import NotUndoableError
from lakebound.tables.commit import WAITS, commit_entry
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.delta.history import DeltaHistory
from lakebound.tables.history import History, TableCommit
from lakebound.tables.iceberg.history import IcebergHistory
from lakebound.tables.table import open_table


def undo(scene: Scene) -> dict[str, int]:
    return apply_undo(scene.spec, scene.at, prepare_undo(scene.spec, scene.at).hash)


def test_the_very_rows_are_back_and_what_the_stream_landed_meanwhile_stays(scene: Scene) -> None:
    before = [table.read_ledger().coverage for table in scene.tables()]
    scene.run(20, 330)
    assert scene.shown() == scene.expected(20, 330)
    assert undo(scene) == {one.id: 310 for one in scene.spec.tables}
    assert scene.shown() == scene.expected(0, 0)
    assert [table.read_ledger().coverage for table in scene.tables()] == before
    entry = next(iter(scene.tables()[0].entries())).entry
    assert (entry.kind, entry.undoes, entry.newest_redo, entry.landed) == ("redo", "plan-1", entry.commit, entry.rows)
    scene.land(LANDED, LANDED + 30)
    scene.run(10, 420, plan="plan-2")
    scene.land(LANDED + 30, LANDED + 60)
    undo(scene)
    assert scene.shown() == scene.expected(0, 0, landed=LANDED + 60)


def test_what_was_undone_is_not_undone_again_and_can_be_redone(scene: Scene) -> None:
    with pytest.raises(NotUndoableError, match="stand on none"):
        prepare_undo(scene.spec, scene.at)
    scene.run(0, 100)
    undo(scene)
    plan = prepare_undo(scene.spec, scene.at)
    assert plan.is_done
    with pytest.raises(NotUndoableError, match="plan-1, is undone"):
        apply_undo(scene.spec, scene.at, plan.hash)
    assert scene.run(0, 100).state == "completed"
    assert scene.shown() == scene.expected(0, 100)
    undo(scene)
    assert scene.shown() == scene.expected(0, 0)


def test_a_second_redo_is_undone_when_nothing_is_kept_of_the_first(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.run(0, 100)
    shown, expired = scene.shown(), {table.read_ledger().newest_redo for table in scene.tables()}
    scene.city = "once more"
    scene.run(50, 250, plan="plan-2")
    for kind in (DeltaHistory, IcebergHistory):
        commits = kind.commits

        def kept(history: History, commits: Callable[[History], Iterator[TableCommit]] = commits) -> Iterator[TableCommit]:
            return takewhile(lambda one: one.entry is None or one.entry.commit not in expired, commits(history))

        monkeypatch.setattr(kind, "commits", kept)
    undo(scene)
    assert scene.shown() == shown


def test_what_was_undone_in_part_is_undone_wholly_before_it_is_redone(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.run(0, 300)
    plan = prepare_undo(scene.spec, scene.at)
    with pytest.MonkeyPatch.context() as patch:
        dies_at(patch, 7)
        with pytest.raises(KeyboardInterrupt):
            apply_undo(scene.spec, scene.at, plan.hash)
    result = scene.run(0, 300)
    assert (result.state, result.error_class) == ("refused", "UndoUnfinishedError"), result
    apply_undo(scene.spec, scene.at, plan.hash)
    assert scene.shown() == scene.expected(0, 0)
    assert scene.run(0, 300).state == "completed"
    undo(scene)
    assert scene.shown() == scene.expected(0, 0)


def test_a_redo_that_has_only_begun_is_undone_by_saying_so(scene: Scene) -> None:
    with pytest.MonkeyPatch.context() as patch:
        dies_at(patch, 4)  # both tables have said that it begins
        with pytest.raises(KeyboardInterrupt):
            scene.run(0, 300)
    assert scene.shown() == scene.expected(0, 0)
    assert [table.read_ledger().redo_progress.left for table in scene.tables()] == [300, 300]
    undo(scene)
    assert [table.read_ledger().redo_progress.left for table in scene.tables()] == [0, 0]
    assert prepare_undo(scene.spec, scene.at).is_done


@pytest.mark.parametrize("point", ["before_commit", "after_commit"])
@pytest.mark.parametrize("number", [1, 3, 5])
def test_one_that_died_goes_on_with_the_same_plan(
    scene: Scene,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
    number: int,
) -> None:
    scene.run(0, 300)
    plan, reach, seen = prepare_undo(scene.spec, scene.at), faults.reach, list[str]()

    def die(where: str, detail: str = "") -> None:
        reach(where, detail)
        if where == point:
            seen.append(where)
            if len(seen) == number:
                raise KeyboardInterrupt

    monkeypatch.setattr(faults, "reach", die)
    with pytest.raises(KeyboardInterrupt):
        apply_undo(scene.spec, scene.at, plan.hash)
    monkeypatch.setattr(faults, "reach", reach)
    assert prepare_undo(scene.spec, scene.at).hash == plan.hash
    apply_undo(scene.spec, scene.at, plan.hash)
    assert scene.shown() == scene.expected(0, 0)


def test_another_redo_since_is_the_one_that_is_undone(scene: Scene) -> None:
    scene.run(0, 200)
    approved = prepare_undo(scene.spec, scene.at).hash
    scene.city = "once more"
    scene.run(100, 300, plan="plan-2")
    with pytest.raises(PlanChangedError):
        apply_undo(scene.spec, scene.at, approved)
    undo(scene)
    scene.city = "redone"
    assert scene.shown() == scene.expected(0, 200)


def test_rows_that_others_decided_about_since_are_not_touched(scene: Scene) -> None:
    scene.run(0, 200)
    for table in scene.tables():
        view = table.read_ledger()
        body = {"kind": "release", "pipeline": scene.spec.pipeline, "epoch": view.epoch, "commit": new_commit_id()}
        draft = Entry.model_validate(body | {"releases": offsets(7, 8), "read": 1, "filtered": 1})
        commit_entry(table, view, [], draft, own_epoch=view.epoch, check_lease=lambda: None, attempts=1)
    shown = scene.shown()
    with pytest.raises(NotUndoableError, match="released from quarantine"):
        prepare_undo(scene.spec, scene.at)
    assert scene.shown() == shown


@pytest.mark.parametrize("is_acknowledged", [False, True])
def test_rows_that_somebody_deleted_since_do_not_come_back(scene: Scene, is_acknowledged: bool) -> None:
    scene.run(0, 200)
    spec = scene.spec.tables[1]
    foreign_iceberg(spec, scene.at).delete("id == 3")
    if is_acknowledged:
        acknowledge(scene.spec, spec, scene.at)
    scene.land(LANDED, LANDED + 10)
    shown = scene.shown()
    with pytest.raises(NotUndoableError, match="others changed rows"):
        prepare_undo(scene.spec, scene.at)
    assert scene.shown() == shown


def test_what_somebody_deleted_before_a_redo_keeps_nobody_from_undoing_it(scene: Scene) -> None:
    foreign_iceberg(scene.spec.tables[1], scene.at).delete("id == 3")
    before = scene.shown()
    scene.run(100, 200)
    undo(scene)
    assert scene.shown() == before


def test_files_of_an_earlier_partitioning_come_back_as_they_were(scene: Scene) -> None:
    foreign = foreign_iceberg(scene.spec.tables[1], scene.at)
    with foreign.update_spec() as change:
        change.add_identity("city")
    delta, iceberg = scene.spec.tables
    by_city = iceberg.model_copy(update={"partition_by": ("city",)})
    scene.spec = scene.spec.model_copy(update={"tables": (delta, by_city)})
    scene.run(50, 200)
    assert scene.shown() == scene.expected(50, 200)
    undo(scene)
    assert scene.shown() == scene.expected(0, 0)


def test_without_the_old_files_nothing_is_undone(scene: Scene) -> None:
    table = scene.tables()[0]
    table.read_ledger()
    old = table.live_data_files()  # type: ignore[attr-defined]
    scene.run(0, 200)
    next(one for one in old if one.path.path.name not in _live(scene)).path.path.unlink()
    with pytest.raises(LakeboundError, match=r"files of .* of before are gone"):
        prepare_undo(scene.spec, scene.at)


def _live(scene: Scene) -> set[str]:
    table = scene.tables()[0]
    table.read_ledger()
    return {one.path.path.name for one in table.live_data_files()}  # type: ignore[attr-defined]


def test_maintenance_keeps_what_undoing_needs_as_long_as_the_plan_says(scene: Scene) -> None:
    scene.run(0, 300)
    plan, policy = prepare_undo(scene.spec, scene.at), scene.spec.maintenance.history
    for table, share in zip(scene.tables(), plan.tables, strict=True):
        table.read_ledger()
        past = past_of(table.history(), table.spec.id)
        redos = {version.version for version in past.versions if version.kind == "redo"}
        assert len(redos) == 4, "one says that it has begun"
        assert {int(share.before), *redos} <= left_by_repairs(past, policy, share.until_ms)
        newest = max(version.committed_at_ms for version in past.versions)
        assert not left_by_repairs(past, policy, newest + round(policy.undo_seconds * 1000) + 1)


def test_any_sequence_of_redos_and_undoing_shows_the_rows_of_the_newest_that_stands(scene: Scene) -> None:
    choice, landed = random.Random(54), LANDED
    stands: list[dict[int, str]] = [scene.expected(0, 0)[0]]
    for number in range(6):
        if choice.random() < 0.5:
            scene.land(landed, landed + 30)
            new = {at: f"city {at % 3}" for at in range(landed, landed + 30)}
            stands, landed = [one | new for one in stands], landed + 30
        if len(stands) > 1 and choice.random() < 0.4:
            undo(scene)
            stands = stands[:-1][-1:]
        else:
            start, end = sorted(choice.sample(range(landed + 1), 2))
            scene.city = f"redone {number}"
            assert scene.run(start, end, plan=f"plan-{number}").state == "completed"
            kept = {at: city for at, city in stands[-1].items() if not start <= at < end}
            stands.append(kept | {at: scene.city for at in range(start, end) if at % 7})
        assert scene.shown() == [stands[-1]] * 2


@pytest.mark.parametrize("seed", range(examples(2)))
def test_any_sequence_beside_other_hands_ends_as_plain_arithmetic_says(scene: Scene, seed: int) -> None:
    """The stream lands, maintenance compacts and cuts a log, and somebody deletes rows, acknowledged or not."""
    choice, landed = random.Random(seed), LANDED
    now = scene.expected(0, 0)
    before: list[dict[int, str]] | None = None
    is_touched = False
    for number in range(10):
        what = choice.choice(["land", "redo", "redo", "undo", "undo", "delete", "acknowledge", "compact"])
        if what == "land":
            scene.land(landed, landed + 20)
            new = {at: f"city {at % 3}" for at in range(landed, landed + 20)}
            now, before = [one | new for one in now], before and [one | new for one in before]
            landed += 20
        elif what == "redo":
            start, end = sorted(choice.sample(range(landed + 1), 2))
            scene.city, before, is_touched = f"redone {number}", now, False
            assert scene.run(start, end, plan=f"plan-{number}").state == "completed"
            new = {at: scene.city for at in range(start, end) if at % 7}
            now = [{at: city for at, city in one.items() if not start <= at < end} | new for one in now]
        elif what == "undo" and before is not None and not is_touched:
            undo(scene)
            now, before = before, None
        elif what == "undo":
            with pytest.raises(NotUndoableError):
                undo(scene)
        elif what == "delete":
            gone = choice.choice(sorted(now[1]))
            foreign_iceberg(scene.spec.tables[1], scene.at).delete(f"id == {gone}")
            now, is_touched = [now[0], {at: city for at, city in now[1].items() if at != gone}], True
        elif what == "acknowledge":
            with suppress(NothingToAcknowledgeError):
                acknowledge(scene.spec, scene.spec.tables[1], scene.at)
        else:
            table = choice.choice(scene.spec.tables)
            compact(scene.at, table)
            if table.format == "delta":
                before = None  # it cuts the log, too
        assert scene.shown() == now, (number, what)


def test_what_was_in_quarantine_is_counted_as_it_was(world: World) -> None:
    """The redo has landed the bad records, and dropped one that was good; then it is undone, and every proof holds."""
    world.land(0, 20, bad={3, 13})
    for one in world.spec.tables:
        table = open_table(one, world.at)
        view = table.read_ledger()
        made = rows(0, 20).filter(pa.array([offset != 5 for offset in range(20)]))
        files = write_data_files(made, table.layout(), "redone")
        commit = new_commit_id()
        body = {"kind": "redo", "pipeline": PIPELINE, "epoch": view.epoch, "commit": commit, "redo_first": commit}
        counts = {"read": 20, "filtered": 1, "landed": 19, "rows": 19, "from_quarantine": 2}
        draft = Entry.model_validate(body | counts | {"redoes": offsets(0, 20), "decision": "plan-1"})
        replace_rows(table, view, NewRows(draft, files, spans_of(offsets(0, 20))), attempts=1, waits=WAITS)
    assert prove(world.spec, world.at, deep=True, facts=StandInKafka(latest=20)).duplicated == 0  # type: ignore[arg-type]
    apply_undo(world.spec, world.at, prepare_undo(world.spec, world.at).hash)
    world.assert_landed_once(20, {3, 13})
    for one in world.spec.tables:
        entry = open_table(one, world.at).read_ledger().entry
        assert entry is not None
        assert (entry.read, entry.landed, entry.filtered, entry.quarantined, entry.released) == (20, 18, 0, 2, 2)
