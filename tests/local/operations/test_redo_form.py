"""A redo by the form of the DAG ``recover``: the same plan as the command's, and only the approved one is started."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import pytest
from tests.support.streams.command_line import answer, lakebound, settings  # noqa: F401
from tests.support.tables.deploys import Kafka, world_fixture  # noqa: F401
from tests.support.tables.foreign_hands import foreign_iceberg
from tests.support.tables.local_tables import offsets
from tests.support.tables.redoing import LANDED, Scene, scene_fixture  # noqa: F401
from tests.support.tables.rewinding import World

from lakebound.control.desired import change_desired
from lakebound.control.folder import ControlFolder
from lakebound.control.incidents import Incident, read_incidents
from lakebound.control.replay_result import ReplayResult
from lakebound.ledger.entry import Entry, new_commit_id
from lakebound.operations.form import kinds
from lakebound.operations.form.asked import RepairForm
from lakebound.operations.form.kinds import Approval, Question, apply_repair, plan_repair
from lakebound.operations.recovery.plan import PlanChangedError, PlanRefusedError
from lakebound.operations.redo import apply as applying
from lakebound.operations.redo.apply import RedoNotCompletedError
from lakebound.operations.redo.marking import Run
from lakebound.operations.redo.orders import RedoOrders
from lakebound.operations.redo.plan import NotRedoableError
from lakebound.operations.redo.versions import UnknownSourceError
from lakebound.operations.replay.bounds import BadBoundError
from lakebound.settings import Settings, load_settings
from lakebound.tables.commit import commit_entry
from lakebound.tables.table import open_table

NOW_MS = 1_800_000_000_000
FROM_FIRST = '{"orders": {"0": 0}}'


def ask(world: World, **form: Any) -> Question:
    """Return the plan of a form, which nobody has settled before."""
    asked = RepairForm.model_validate({"pipeline": "orders", "action": "redo", **form})
    current = load_settings()
    return plan_repair(asked.settled(world.spec, current, NOW_MS), world.spec, current, NOW_MS)


def approve(world: World, plan: Question, approved: str | None = None) -> Incident:
    """Apply a plan that bob has approved."""
    approval = Approval(approved or plan.hash, by="bob", asked_by="ada", now_ms=NOW_MS, follow=not_followed)
    return apply_repair(plan.form, world.spec, load_settings(), approval)


def not_followed(_: object) -> NoReturn:
    raise AssertionError("no application was started")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[RedoOrders]]:
    """Have applications end in a state at once, and return the orders of those that are started."""

    def end_in(state: str) -> list[RedoOrders]:
        found: list[RedoOrders] = []

        def run(orders: RedoOrders, settings: Settings, application: str, blank: ReplayResult, follow: object) -> ReplayResult:  # noqa: F811
            found.append(orders)
            return blank.model_copy(update={"state": state, "reason": "it was asked to end", "chunks": 2, "chunks_done": 1})

        monkeypatch.setattr(applying, "run_backfill", run)
        return found

    return end_in


@pytest.mark.parametrize(
    ("form", "arguments"), [({"range_from": FROM_FIRST}, ["--from", FROM_FIRST]), ({"source": "aaa"}, ["--source", "aaa"])]
)
def test_the_page_is_the_plan_of_the_command(world: World, form: dict[str, str], arguments: list[str]) -> None:
    plan, command = ask(world, **form), answer("redo", "orders", *arguments)
    assert plan.hash == command["hash"]
    said = lakebound("redo", "orders", *arguments).stdout.partition("\n\nPlan ")[0].splitlines()
    assert len(said) > 6
    for line in said:
        assert f"- {line.strip()}" in plan.page, line
    assert "cannot be redone, no longer in Kafka, 7 offsets" in plan.page


def test_what_lands_until_somebody_approves_is_no_part_of_the_plan(
    world: World, started: Callable[[str], list[RedoOrders]]
) -> None:
    plan, orders = ask(world, range_from=FROM_FIRST), started("completed")
    world.land(60, 70)
    change_desired(ControlFolder(world.at.home, "orders"), "held", reason="rows are wrong", by="ada")
    incident = approve(world, plan)
    (one,) = orders
    assert one.plan == plan.hash and one.held_since is not None
    assert [entry["partitions"] for entry in answer("redo", "orders", "--from", FROM_FIRST)["redone"].values()] == [
        {"0": [[7, 70]]}
    ]
    assert {name: offsets.partitions[0] for name, offsets in one.wanted.items()} == {"orders": ((7, 60),)}
    assert (incident.asked_by, incident.approved_by, incident.facts["plan"]) == ("ada", "bob", plan.hash)
    assert read_incidents(one.control) == [incident]


def test_another_plan_than_the_approved_one_is_not_started(world: World, started: Callable[[str], list[RedoOrders]]) -> None:
    plan, orders = ask(world, range_from=FROM_FIRST), started("completed")
    with pytest.raises(PlanChangedError, match="nothing was applied"):
        approve(world, plan, "0" * 12)
    foreign_iceberg(world.iceberg, world.at).delete("id == 45")
    with pytest.raises(PlanChangedError, match="nothing was applied"):
        approve(world, plan)
    assert not orders and read_incidents(ControlFolder(world.at.home, "orders")) == []


def test_what_kafka_deletes_meanwhile_is_left_out(world: World, started: Callable[[str], list[RedoOrders]]) -> None:
    plan, orders = ask(world, source="aaa"), started("completed")
    world.kafka = Kafka(earliest=50)
    approve(world, plan)
    assert {name: offsets.partitions[0] for name, offsets in orders[0].wanted.items()} == {"orders": ((50, 60),)}


def test_one_that_ended_early_fails_and_says_what_does_the_rest(
    world: World, started: Callable[[str], list[RedoOrders]]
) -> None:
    plan, orders = ask(world, source="bbb"), started("stopped")
    with pytest.raises(RedoNotCompletedError, match=r"stopped after 1 of 2 batches.*the same plan does the rest"):
        approve(world, plan)
    assert ask(world, source="bbb").hash == plan.hash == orders[0].plan
    (incident,) = read_incidents(ControlFolder(world.at.home, "orders"))
    assert incident.outcome.startswith("stopped")


def commit_own(world: World, plan: Question, source: str, start: int, end: int, left: int) -> None:
    """Have the plan redo some offsets in each table, by other rows of the same number: none."""
    for one in world.spec.tables:
        table = open_table(one, world.at)
        view, commit = table.read_ledger(), new_commit_id()
        draft = Entry(kind="redo", pipeline="orders", epoch=view.epoch, commit=commit, redoes=offsets(start, end))
        draft = Run("orders", plan.hash, source).named(draft, commit, left)
        commit_entry(table, view, [], draft, own_epoch=view.epoch, check_lease=lambda: None, attempts=1)


def test_one_that_was_interrupted_is_not_told_that_its_own_code_made_the_rows(world: World) -> None:
    plan, ours = ask(world, source="aaa"), answer("redo", "orders", "--source", "aaa")["source"]
    commit_own(world, plan, ours, 7, 17, left=23)
    found = answer("redo", "orders", "--source", "aaa")
    assert (found["hash"], found["made_by"], found["is_unfinished"]) == (plan.hash, ["aaa"], True)
    assert [share["done"] for share in found["tables"]] == [10, 10]
    assert not any("would make the same again" in note for note in found["notes"])


def test_one_that_was_interrupted_ends_when_kafka_has_nothing_left(
    world: World, started: Callable[[str], list[RedoOrders]]
) -> None:
    plan, orders = ask(world, source="aaa"), started("completed")
    commit_own(world, plan, "good", 7, 17, left=23)
    world.kafka = Kafka(earliest=60)
    again = ask(world, source="aaa")
    assert again.hash == plan.hash and "it was interrupted, and of the rest Kafka has no record any more" in again.page
    approve(world, plan)
    assert not orders[0].wanted and {name: held.partitions[0] for name, held in orders[0].gone.items()} == {
        "orders": ((0, 20), (40, 60))
    }
    assert "completed: " in lakebound("redo", "orders", "--source", "aaa", "--apply", plan.hash).stdout
    assert len(orders) == 2


def test_refusals_are_those_of_the_command(world: World) -> None:
    with pytest.raises(UnknownSourceError, match="aaa, bbb"):
        ask(world, source="ccc")
    with pytest.raises(
        PlanRefusedError, match=r"no offset of the range is in a table and in Kafka: .*7 offsets: orders/0 \[0, 7\)"
    ):
        ask(world, range_from=FROM_FIRST, range_to='{"orders": {"0": 7}}')
    with pytest.raises(BadBoundError, match="range_to: 'soon' is neither a place in Kafka nor a time"):
        ask(world, range_from="earliest", range_to="soon")
    world.kafka = Kafka(is_compacted=True)
    with pytest.raises(NotRedoableError, match="What works"):
        ask(world, source="aaa")


def test_the_newest_redo_is_undone_by_its_own_plan(
    scene: Scene,
    settings: Settings,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kinds, "places_of", lambda *_: scene.at)
    form = RepairForm(pipeline="orders", action="undo_redo")
    scene.run(20, 330)
    plan = plan_repair(form, scene.spec, settings, NOW_MS)
    assert "undo the redo plan-1" in plan.page
    approval = Approval(plan.hash, by="bob", asked_by="ada", now_ms=NOW_MS, follow=not_followed)
    incident = apply_repair(plan.form, scene.spec, settings, approval)
    assert scene.shown() == scene.expected(0, 0, landed=LANDED)
    assert incident.facts["rows"] == {one.id: 310 for one in scene.spec.tables} and incident.approved_by == "bob"
    with pytest.raises(PlanRefusedError, match="plan-1, is undone already"):
        plan_repair(form, scene.spec, settings, NOW_MS)
