"""The form behind every repair, and the operators: what counts as an approval, and that nothing else does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml
from pydantic import ValidationError
from tests.support.streams.command_line import ORDERS, settings  # noqa: F401

from lakebound.control.desired import change_desired, read_desired
from lakebound.control.folder import ControlFolder
from lakebound.control.incidents import read_incidents
from lakebound.errors import LakeboundError
from lakebound.inspection.doctor.diagnosis import Diagnosis, RuleFinding
from lakebound.ledger.topics import TopicFacts
from lakebound.operations.recovery import facts as collecting
from lakebound.operations.recovery.form import InvalidRepairError, RepairForm
from lakebound.operations.recovery.plan import PlanChangedError, PlanRefusedError
from lakebound.settings import Settings
from lakebound_airflow.operators.recover import ApplyRepairOperator, NotApprovedError, PlanRepairOperator, approver

APPROVED = {"chosen_options": ["Approve"], "params_input": {}, "responded_by_user": {"id": "7", "name": "ada"}}
REJECTED = {**APPROVED, "chosen_options": ["Reject"]}


class SilentKafka:
    """A broker that has the topic, empty."""

    def topics(self, names: list[str], **_: Any) -> dict[str, TopicFacts]:
        return {name: TopicFacts("id", {0: 0}, {0: 0}) for name in names}


@dataclass
class FakeTask:
    """Stands for the task instance: XComs by task id."""

    values: dict[str, Any] = field(default_factory=dict)

    def xcom_pull(self, task_ids: str) -> Any:
        return self.values.get(task_ids)


@pytest.fixture
def control(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlFolder]:  # noqa: F811
    """The pipeline ``orders``, without tables, held."""
    monkeypatch.setattr(collecting, "KafkaFacts", lambda *_, **__: SilentKafka())
    folder = ControlFolder(settings.home, "orders")
    change_desired(folder, "held", reason="for the audit", by="bob")
    yield folder


def planned(**params: Any) -> dict[str, Any]:
    """Return what the planning task leaves."""
    form = {"pipeline": "orders", "action": "resume", "to": None, "table": None, "deep": True, **params}
    return PlanRepairOperator(task_id="plan").execute({"params": form})


def apply(plan: dict[str, Any], answer: Any) -> dict[str, Any]:
    """Run the applying task."""
    operator = ApplyRepairOperator(task_id="apply", plan_task_id="plan", approval_task_id="approve")
    return operator.execute({"ti": FakeTask({"plan": plan, "approve": answer})})


def test_a_plan_writes_nothing_and_is_a_page(control: ControlFolder) -> None:
    plan = planned()
    assert plan["hash"] in plan["markdown"]
    assert "held (for the audit)" in plan["markdown"]
    assert plan["form"] == {"pipeline": "orders", "action": "resume", "to": None, "table": None}
    assert read_desired(control).state == "held"
    assert read_incidents(control) == []


def test_an_approved_plan_is_applied_in_the_name_of_who_approved_it(control: ControlFolder) -> None:
    incident = apply(planned(), APPROVED)
    assert (incident["approved_by"], incident["kind"]) == ("ada", "repair")
    assert (read_desired(control).state, read_desired(control).by) == ("running", "ada")
    assert [found.id for found in read_incidents(control)] == [incident["id"]]


@pytest.mark.parametrize("answer", [None, REJECTED, {}, {"chosen_options": []}, {"chosen_options": ["Approve"]}, "Approve"])
def test_nothing_else_is_an_approval(control: ControlFolder, answer: Any) -> None:
    plan = planned()
    with pytest.raises(NotApprovedError, match="nothing was applied"):
        apply(plan, answer)
    assert read_desired(control).state == "held"
    assert read_incidents(control) == []


def test_a_second_run_of_the_task_applies_nothing(control: ControlFolder) -> None:
    plan = planned()
    apply(plan, APPROVED)
    with pytest.raises(PlanRefusedError, match="nothing to do"):
        apply(plan, APPROVED)
    assert len(read_incidents(control)) == 1


def test_changed_facts_apply_nothing(control: ControlFolder) -> None:
    plan = planned()
    change_desired(control, "held", reason="for another audit", by="eve")
    with pytest.raises(PlanChangedError):
        apply(plan, APPROVED)
    assert read_desired(control).by == "eve"


def test_who_approved() -> None:
    assert approver(APPROVED) == "ada"
    assert approver({**APPROVED, "responded_by_user": {"id": "7", "name": None}}) == "7"
    assert approver({**APPROVED, "responded_by_user": None}) is None


class TestForm:
    @pytest.mark.parametrize(
        "wrong",
        [
            {"action": "rewind"},
            {"action": "resume", "to": "2026-11-20T14:05"},
            {"action": "accept_loss", "table": "lake.orders"},
        ],
    )
    def test_what_contradicts_itself_is_refused(self, wrong: dict[str, Any]) -> None:
        with pytest.raises((ValidationError, InvalidRepairError), match="nothing was planned"):
            RepairForm.model_validate({"pipeline": "orders", **wrong})

    def test_a_settled_time_is_the_same_whenever_it_is_read(self, settings: Settings) -> None:  # noqa: F811
        spec = _spec()
        form = RepairForm(pipeline="orders", action="rewind", to="10m ago")
        settled = form.settled(spec, settings, 1_800_000_000_000)
        assert settled.request(1_800_000_000_000).to_ms == settled.request(1_900_000_000_000).to_ms == 1_799_999_400_000
        assert settled.settled(spec, settings, 1_900_000_000_000) == settled

    def test_auto_takes_the_action_that_the_doctor_asks_for(
        self, control: ControlFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        held = RuleFinding(rule="not-wanted", verdict="healthy", sentence="The pipeline is held.")
        diagnosis = Diagnosis(subject="orders", findings=(held,))
        monkeypatch.setattr("lakebound.inspection.doctor.examine.examine_pipeline", lambda *_: diagnosis)
        assert planned(action="auto")["form"]["action"] == "resume"

    def test_a_pipeline_that_is_not_there_is_a_sentence(self, control: ControlFolder) -> None:
        with pytest.raises(LakeboundError, match="there is no pipeline 'payments'"):
            planned(pipeline="payments")


def _spec() -> Any:
    from lakebound.spec.pipeline import PipelineSpec

    return PipelineSpec.model_validate(yaml.safe_load(yaml.safe_dump(ORDERS)))
