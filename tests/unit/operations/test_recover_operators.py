"""The form behind every repair, and the operators: what counts as an approval, and that nothing else does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
import yaml
from airflow.api_fastapi.execution_api.datamodels.hitl import HITLDetailRequest
from airflow.sdk.exceptions import AirflowSkipException, TaskAwaitingInput
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import CreateHITLDetailPayload, HITLDetailRequestResult
from pydantic import ValidationError
from tests.support.streams.command_line import ORDERS, settings  # noqa: F401

from lakebound.control.desired import Desired, change_desired, read_desired
from lakebound.control.folder import ControlFolder
from lakebound.control.incidents import read_incidents
from lakebound.control.replay_result import ReplayResult, write_result
from lakebound.control.submission import BackendName
from lakebound.errors import LakeboundError
from lakebound.inspection.doctor.diagnosis import Diagnosis, RuleFinding
from lakebound.landing.run_spec import RunSpec, make_run_spec
from lakebound.ledger.topics import TopicFacts
from lakebound.operations.backfill.running import RunningBackfill
from lakebound.operations.form.asked import InvalidRepairError, RepairForm
from lakebound.operations.form.kinds import rewind_request
from lakebound.operations.recovery import facts as collecting
from lakebound.operations.recovery.approval import NotApprovedError, options_for
from lakebound.operations.recovery.plan import PlanChangedError, PlanRefusedError
from lakebound.settings import Settings
from lakebound_airflow.operators import recover
from lakebound_airflow.operators.recover import RepairOperator

ADA, BOB = {"id": "7", "name": "ada"}, {"id": "8", "name": "bob"}


class SilentKafka:
    """A broker that has the topic, empty."""

    def topics(self, names: list[str], **_: Any) -> dict[str, TopicFacts]:
        return {name: TopicFacts("id", {0: 0}, {0: 0}) for name in names}


class ExecutionApi:
    """Stands for Airflow's execution API, which keeps the first question of a task and removes its answer.

    What it is sent must be a question by Airflow's own model of the server's side.
    """

    def __init__(self) -> None:
        self.question: CreateHITLDetailPayload | None = None

    def send(self, question: CreateHITLDetailPayload) -> HITLDetailRequestResult:
        HITLDetailRequest.model_validate(question.model_dump(exclude={"type"}))
        self.question = self.question or question
        return HITLDetailRequestResult.from_api_response(self.question)


@dataclass
class Run:
    """One run of the DAG, asked for by ``asked_by``."""

    api: ExecutionApi
    pipelines: Path
    asked_by: str | None = "ada"
    waiting: TaskAwaitingInput | None = None

    def context(self, **params: Any) -> dict[str, Any]:
        form = {"pipeline": "orders", "action": "resume", "to": None, "table": None, "deep": True, **params}
        return {
            "params": form,
            "ti": SimpleNamespace(id=uuid4()),
            "dag_run": SimpleNamespace(triggering_user_name=self.asked_by),
        }

    def ask(self, **params: Any) -> CreateHITLDetailPayload:
        """Run the first half of the task; return the question as Airflow shows it."""
        with pytest.raises(TaskAwaitingInput) as parked:
            operator().execute(self.context(**params))
        self.waiting = parked.value
        assert self.api.question is not None
        return self.api.question

    def answer(self, chosen: list[str], user: dict[str, str] | None = BOB, **params: Any) -> dict[str, Any]:
        """Run the second half with an answer."""
        return self.resume({"chosen_options": chosen, "params_input": {}, "responded_by_user": user}, **params)

    def resume(self, event: dict[str, Any], **params: Any) -> dict[str, Any]:
        assert self.waiting is not None
        kwargs = {**(self.waiting.kwargs or {}), "event": event}
        resumed = getattr(operator(), self.waiting.method_name)
        incident: dict[str, Any] = resumed(context=self.context(**params), **kwargs)
        return incident


def operator() -> RepairOperator:
    """Return the task, as each of its processes makes it anew."""
    return RepairOperator(task_id="repair", response_timeout=timedelta(hours=1))


@pytest.fixture
def control(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlFolder]:  # noqa: F811
    """The pipeline ``orders``, without tables, held."""
    monkeypatch.setattr(collecting, "KafkaFacts", lambda *_, **__: SilentKafka())
    monkeypatch.delenv("LAKEBOUND_SELF_APPROVAL", raising=False)
    folder = ControlFolder(settings.home, "orders")
    change_desired(folder, "held", reason="for the audit", by="bob")
    yield folder


@pytest.fixture
def run(control: ControlFolder, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Run:  # noqa: F811
    """A run of the DAG that nobody has answered."""
    api = ExecutionApi()
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", api, raising=False)
    return Run(api, settings.pipelines)


def name_approvers(run: Run, *names: str) -> None:
    """Write the pipeline's YAML with these approvers."""
    (run.pipelines / "orders.yaml").write_text(yaml.safe_dump({**ORDERS, "approvers": list(names)}))


def is_untouched(control: ControlFolder) -> bool:
    return read_desired(control).state == "held" and read_incidents(control) == []


def test_a_question_writes_nothing_and_is_a_page(control: ControlFolder, run: Run) -> None:
    question = run.ask()
    approve, reject = question.options
    assert (question.subject, reject) == ("resume orders", "Reject")
    assert question.body is not None
    assert approve.removeprefix("Approve ") in question.body
    assert "held (for the audit)" in question.body
    assert "Asked by ada" in question.body
    assert is_untouched(control)


def test_an_approved_plan_is_applied_in_the_names_of_who_asked_and_who_approved(control: ControlFolder, run: Run) -> None:
    incident = run.answer(run.ask().options[:1])
    assert (incident["asked_by"], incident["approved_by"], incident["kind"]) == ("ada", "bob", "repair")
    assert (read_desired(control).state, read_desired(control).by) == ("running", "bob")
    assert [found.id for found in read_incidents(control)] == [incident["id"]]


def test_parameters_that_change_after_the_question_change_nothing(control: ControlFolder, run: Run) -> None:
    incident = run.answer(run.ask().options[:1], action="drop_zombie", pipeline="payments")
    assert (incident["pipeline"], incident["plan"]["action"]) == ("orders", "resume")


def test_a_rejected_plan_is_skipped(control: ControlFolder, run: Run) -> None:
    run.ask()
    with pytest.raises(AirflowSkipException, match="bob rejected the plan; nothing was applied"):
        run.answer(["Reject"])
    assert is_untouched(control)


@pytest.mark.parametrize("user", [None, ADA, {"id": "ada", "name": ""}])
def test_an_approval_by_nobody_or_by_who_asked_applies_nothing(
    control: ControlFolder, run: Run, user: dict[str, str] | None
) -> None:
    chosen = run.ask().options[:1]
    with pytest.raises(NotApprovedError, match="nothing was applied"):
        run.answer(chosen, user)
    assert is_untouched(control)


def test_a_team_of_one_approves_itself(control: ControlFolder, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEBOUND_SELF_APPROVAL", "allow")
    question = run.ask()
    assert "The user who asked may approve, too" in str(question.body)
    assert run.answer(question.options[:1], ADA)["approved_by"] == "ada"


def test_no_answer_in_time_applies_nothing(control: ControlFolder, run: Run) -> None:
    run.ask()
    with pytest.raises(NotApprovedError, match=r"nobody answered \(timeout\)"):
        run.resume({"error": "The response timeout has passed.", "error_type": "timeout"})
    assert is_untouched(control)


def test_another_hash_than_the_plan_s_applies_nothing(control: ControlFolder, run: Run) -> None:
    run.ask()
    with pytest.raises(PlanChangedError):
        run.answer(options_for("0123456789ab")[:1])
    assert is_untouched(control)


def test_changed_facts_apply_nothing(control: ControlFolder, run: Run) -> None:
    chosen = run.ask().options[:1]
    change_desired(control, "held", reason="for another audit", by="eve")
    with pytest.raises(PlanChangedError):
        run.answer(chosen)
    assert read_desired(control).by == "eve"


def test_an_answer_is_applied_once(control: ControlFolder, run: Run) -> None:
    chosen = run.ask().options[:1]
    run.answer(chosen)
    with pytest.raises(PlanRefusedError, match="nothing to do"):
        run.answer(chosen)
    assert len(read_incidents(control)) == 1


def test_a_cleared_task_asks_the_same_again_and_refuses_to_ask_under_an_old_page(control: ControlFolder, run: Run) -> None:
    assert run.ask().options == run.ask().options
    change_desired(control, "held", reason="for another audit", by="eve")
    with pytest.raises(NotApprovedError, match="has changed since this run first asked"):
        operator().execute(run.context())


class TestApplication:
    """What a redo starts: a stand-in that ends when it is asked to, as the real one does after its batch."""

    class Process:
        """Ends with code 1 when it is asked to."""

        def __init__(self, orders: RunSpec, polled: Callable[[], None]) -> None:
            self._orders, self._polled = orders, polled

        def poll(self) -> int | None:
            self._polled()
            return 1 if self._orders.control.stop_marker(self._orders.app_id).exists() else None

    def test_it_is_followed_to_its_end_and_asked_to_end_with_the_task(
        self,
        settings: Settings,  # noqa: F811
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(recover, "_POLL_SECONDS", 0.0)
        task, orders, polls = operator(), make_run_spec(_spec(), settings, Desired(), "redo-1"), list[int]()

        def polled() -> None:
            polls.append(len(polls))
            write_result(orders.control, ReplayResult(app_id="redo-1", chunks=9, chunks_done=len(polls)))
            if len(polls) == 3:
                task.on_kill()

        task.on_kill()  # nothing was started yet
        process: Any = self.Process(orders, polled)
        submission = orders.submission(BackendName.LOCAL, None)
        assert task._follow(RunningBackfill(orders, submission, process)) == 1
        assert len(polls) == 3


class TestApprovers:
    def test_they_are_assigned_without_who_asked(self, run: Run) -> None:
        name_approvers(run, "ada", "bob")
        assigned = run.ask().assigned_users
        assert [(user.id, user.name) for user in assigned or ()] == [("bob", "bob")]

    def test_where_ids_are_not_names_the_answer_is_compared(
        self,
        run: Run,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        fab = "airflow.providers.fab.auth_manager.fab_auth_manager.FabAuthManager"
        monkeypatch.setenv("AIRFLOW__CORE__AUTH_MANAGER", fab)
        name_approvers(run, "cleo")
        question = run.ask()
        assert not question.assigned_users
        with pytest.raises(NotApprovedError, match="bob is not in `approvers`"):
            run.answer(question.options[:1])
        assert run.answer(question.options[:1], {"id": "9", "name": "cleo"})["approved_by"] == "cleo"

    def test_who_is_no_approver_any_more_approves_nothing(
        self,
        control: ControlFolder,
        run: Run,
    ) -> None:
        name_approvers(run, "bob", "cleo")
        chosen = run.ask().options[:1]
        name_approvers(run, "cleo")
        with pytest.raises(NotApprovedError, match="bob is not in `approvers`"):
            run.answer(chosen)
        assert is_untouched(control)

    def test_changed_approvers_are_not_asked_under_an_old_page(self, run: Run) -> None:
        name_approvers(run, "bob", "cleo")
        run.ask()
        name_approvers(run, "cleo")
        with pytest.raises(NotApprovedError, match="who may approve it, has changed"):
            operator().execute(run.context())

    def test_a_question_for_nobody_is_not_asked(self, run: Run) -> None:
        name_approvers(run, "ada")
        with pytest.raises(NotApprovedError, match="the only one in `approvers`"):
            operator().execute(run.context())
        run.asked_by = None
        with pytest.raises(NotApprovedError, match="not known who asked"):
            operator().execute(run.context())


class TestForm:
    @pytest.mark.parametrize(
        "wrong",
        [
            {"action": "rewind"},
            {"action": "resume", "to": "2026-11-20T14:05"},
            {"action": "accept_loss", "table": "lake.orders"},
            {"action": "redo"},
            {"action": "redo", "source": "aaa", "range_to": "latest"},
            {"action": "redo", "source": "aaa", "to": "10m ago"},
            {"action": "undo_redo", "source": "aaa"},
            {"action": "rewind", "to": "10m ago", "range_from": "earliest"},
        ],
    )
    def test_what_contradicts_itself_is_refused(self, wrong: dict[str, Any]) -> None:
        with pytest.raises((ValidationError, InvalidRepairError), match="nothing was planned"):
            RepairForm.model_validate({"pipeline": "orders", **wrong})

    def test_a_settled_time_is_the_same_whenever_it_is_read(self, settings: Settings) -> None:  # noqa: F811
        spec = _spec()
        form = RepairForm(pipeline="orders", action="rewind", to="10m ago")
        settled = form.settled(spec, settings, 1_800_000_000_000)
        assert rewind_request(settled, 1_800_000_000_000).to_ms == rewind_request(settled, 1_900_000_000_000).to_ms
        assert rewind_request(settled, 1_900_000_000_000).to_ms == 1_799_999_400_000
        assert settled.settled(spec, settings, 1_900_000_000_000) == settled

    def test_auto_takes_the_action_that_the_doctor_asks_for(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        held = RuleFinding(rule="not-wanted", verdict="healthy", sentence="The pipeline is held.")
        diagnosis = Diagnosis(subject="orders", findings=(held,))
        monkeypatch.setattr("lakebound.inspection.doctor.examine.examine_pipeline", lambda *_: diagnosis)
        assert run.ask(action="auto").subject == "resume orders"

    def test_a_pipeline_that_is_not_there_is_a_sentence(self, run: Run) -> None:
        with pytest.raises(LakeboundError, match="there is no pipeline 'payments'"):
            operator().execute(run.context(pipeline="payments"))


def _spec() -> Any:
    from lakebound.spec.pipeline import PipelineSpec

    return PipelineSpec.model_validate(yaml.safe_load(yaml.safe_dump(ORDERS)))
