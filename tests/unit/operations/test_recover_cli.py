"""``lakebound recover`` and ``lakebound incidents``."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.streams.command_line import answer, lakebound, settings  # noqa: F401

from lakebound.control.desired import change_desired, read_desired
from lakebound.control.folder import ControlFolder
from lakebound.control.incidents import Decision, read_incidents, record_incident
from lakebound.control.person import operating_system_user
from lakebound.inspection.doctor.diagnosis import Diagnosis, RuleFinding
from lakebound.inspection.proof.result import Proof, TableProof
from lakebound.ledger.lost import LostRange
from lakebound.ledger.topics import TopicFacts
from lakebound.operations.recovery import facts as collecting
from lakebound.settings import Settings

STOPPED = RuleFinding(rule="not-wanted", verdict="healthy", sentence="the pipeline is held")


class EmptyKafka:
    """A broker that has the topic, empty."""

    def topics(self, names: list[str], **_: Any) -> dict[str, TopicFacts]:
        return {name: TopicFacts("id", {0: 0}, {0: 0}) for name in names}


@pytest.fixture
def control(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> ControlFolder:  # noqa: F811
    """The pipeline ``orders``, without tables, held; the doctor and the proof say what they are told."""
    monkeypatch.setattr(collecting, "KafkaFacts", lambda *_, **__: EmptyKafka())
    diagnosis = Diagnosis(subject="orders", findings=(STOPPED,))
    monkeypatch.setattr("lakebound.inspection.doctor.examine.examine_pipeline", lambda *_: diagnosis)
    proof = Proof(pipeline="orders", level="entries", tables=(TableProof(table="delta:lake.orders", source="entry"),))
    monkeypatch.setattr("lakebound.inspection.proof.collect.prove", lambda *_, **__: proof)
    folder = ControlFolder(settings.home, "orders")
    change_desired(folder, "held", reason="for the audit", by="bob")
    return folder


def test_without_an_action_the_doctor_chooses_and_the_plan_ends_with_the_command_that_applies_it(
    control: ControlFolder,
) -> None:
    result = lakebound("recover", "orders")
    assert "the doctor recommends the action resume" in result.stderr
    assert "set the desired state to running; now it is held (for the audit)" in result.stdout
    command = result.stdout.splitlines()[-1].removeprefix("To apply it: lakebound ").split()
    assert read_desired(control).state == "held", "a plan writes nothing"
    applied = lakebound(*command, "--by", "ada")
    assert "resume: applied: no table was written; incident " in applied.stdout
    assert "doctor: healthy" in applied.stdout
    assert "pipeline orders: proved by its entries" in applied.stdout
    assert (read_desired(control).state, read_desired(control).by) == ("running", "ada")
    (incident,) = read_incidents(control)
    assert (incident.asked_by, incident.approved_by) == (operating_system_user(), "ada")


def test_the_plan_and_what_was_applied_as_json(control: ControlFolder) -> None:
    plan = answer("recover", "orders", "--action", "resume", "--plan")
    assert (plan["action"], len(plan["hash"])) == ("resume", 12)
    applied = answer("recover", "orders", "--action", "resume", "--apply", plan["hash"])
    assert applied["incident"]["plan"]["hash"] == plan["hash"]
    assert {applied["incident"][who] for who in ("asked_by", "approved_by")} == {operating_system_user()}
    assert (applied["diagnosis"]["verdict"], applied["proof"]["ok"], applied["committed"]) == ("healthy", True, {})


def test_a_refusal_is_one_sentence_and_exit_code_1(control: ControlFolder) -> None:
    nothing = lakebound("recover", "orders", "--action", "accept_loss", code=1)
    assert "no plan for accept_loss" in nothing.stderr
    changed = lakebound("recover", "orders", "--action", "resume", "--apply", "0123456789ab", code=1)
    assert "nothing was applied" in changed.stderr
    assert read_desired(control).state == "held"
    unknown = lakebound("recover", "orders", "--action", "mend", code=2)
    assert "is not one of auto, resume" in unknown.output
    lakebound("recover", "orders", "--plan", "--apply", "0123456789ab", code=2)


def test_a_proof_that_does_not_hold_afterwards_is_exit_code_1(control: ControlFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = TableProof(table="delta:lake.orders", problems=("doubled rows: 1",))
    proof = Proof(pipeline="orders", level="entries", tables=(broken,))
    monkeypatch.setattr("lakebound.inspection.proof.collect.prove", lambda *_, **__: proof)
    plan = answer("recover", "orders", "--action", "resume")
    assert (
        "the proof does not hold"
        in lakebound("recover", "orders", "--action", "resume", "--apply", plan["hash"], code=1).stdout
    )


def test_incidents_are_listed_newest_first(settings: Settings) -> None:  # noqa: F811
    assert lakebound("incidents").stdout == "no incidents\n"
    lost = LostRange(topic="orders", partition=0, start=10, end=25)
    for pipeline, what in (("orders", "first"), ("orders", "second"), ("payments", "third")):
        record_incident(
            ControlFolder(settings.home, pipeline),
            "repair",
            what,
            outcome="applied",
            runbook="lag",
            decision=Decision(approved_by="ada", loses=[lost]),
        )
    assert [found["what"] for found in answer("incidents")] == ["third", "second", "first"]
    assert [found["what"] for found in answer("incidents", "orders")] == ["second", "first"]
    shown = lakebound("incidents", "orders").stdout
    assert all(text in shown for text in ("orders", "repair", "second", "15", "ada", "applied", "lag"))


def test_incidents_of_a_pipeline_that_is_not_there(settings: Settings) -> None:  # noqa: F811
    assert "there is no pipeline 'payments'" in lakebound("incidents", "payments", code=1).stderr
    assert answer("incidents", "orders") == []
