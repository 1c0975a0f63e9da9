"""The DAG ``recover`` under a real Airflow: a plan is applied once, if it was approved and its facts still hold.

The pipeline has real tables and a real broker, and no application: what it lost to retention is what the plans are about.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from lakebound.control.incidents import read_incidents
from lakebound.local.airflow_client import AirflowAnswerError, AirflowClient
from lakebound.local.broker import Broker
from lakebound.tables.places import places_of
from tests.support.airflow.real_stack import USERS, Stack, request_until_taken
from tests.support.airflow.run_views import set_state, wait_run, xcoms
from tests.support.airflow.stack_folder import HASTY
from tests.support.kafka.makers import topic_maker
from tests.support.tables.landed import GOOD, Landed, send
from tests.support.waiting import HANGS_SECONDS, wait_until

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(420)]

LANDED, FIRST_LOSS, SECOND_LOSS, PRODUCED = 40, 50, 55, 60
TASKS_SECONDS = 120.0
ENDED = {"success", "failed", "upstream_failed", "skipped", "removed"}


@dataclass
class Damaged:
    """A pipeline of which Kafka has deleted more than was landed."""

    stack: Stack
    landed: Landed
    topic: str
    yaml: Path
    clients: dict[str, AirflowClient]
    questions: dict[str, dict[str, Any]] = field(default_factory=dict)

    def lose(self, earliest: int) -> None:
        """Have Kafka delete everything before an offset."""
        admin = AdminClient({"bootstrap.servers": self.landed.broker.bootstrap_servers})
        admin.delete_records([TopicPartition(self.topic, 0, earliest)])[TopicPartition(self.topic, 0)].result(HANGS_SECONDS)

    def ask(self, dag_id: str = "recover", user: str = "ada") -> str:
        """Trigger the DAG as a user, and return the run's id."""
        form = {"pipeline": self.landed.spec.pipeline, "action": "accept_loss", "deep": True}
        return self.clients[user].trigger(dag_id, form)

    def answer(self, run_id: str, *, approve: bool, user: str = "bob") -> None:
        """Answer as a user does under *Required Actions*: with one of the options that are shown."""
        options = self.questions[run_id]["options"]
        self.clients[user].answer("recover", run_id, "repair", options[0 if approve else 1])

    def clear(self, run_id: str) -> None:
        """Clear the task, as a person does in the UI."""
        self.stack.client.clear("recover", run_id, ["repair"])

    def wait(self, run_id: str, task_id: str, *states: str, dag_id: str = "recover") -> dict[str, Any]:
        """Wait until a task of the run is in one of the states, and return its instance; it may not end in another."""

        def found() -> dict[str, Any] | None:
            instances = {one["task_id"]: one for one in self.stack.client.task_instances(dag_id, run_id)}
            state = instances[task_id]["state"]
            if state in ENDED - set(states):
                pytest.fail(f"{what}: {self.story(run_id, dag_id)}")
            return instances[task_id] if state in states else None

        what = f"{task_id} of {run_id} to be {' or '.join(states)}"
        return wait_until(found, TASKS_SECONDS, what, poll_seconds=0.5) or pytest.fail("unreachable")

    def wait_asked(self, run_id: str, try_number: int = 1) -> None:
        """Wait until the run asks, and the scheduler knows that the question's first half is over; keep the question.

        Airflow fails a task that is answered before: it takes the end of the first half for that of the second
        (scheduler_job_runner.py, "finished with state success, but the task instance's state attribute is running").
        """
        self.wait(run_id, "repair", "awaiting_input")
        key = f"TaskInstanceKey(dag_id='recover', task_id='repair', run_id='{run_id}', try_number={try_number}"
        said = f"state success for task instance {key}"
        wait_until(lambda: said in self.stack.airflow.log.read_text(errors="replace"), 60, f"word of {said}", poll_seconds=0.5)
        self.questions[run_id] = self.stack.client.question("recover", run_id, "repair")

    def forge_xcoms(self, run_id: str) -> None:
        """Have a user write XComs of the task, as they stood where earlier releases read the plan and the approval."""
        forged = {
            "form": {"pipeline": "records", "action": "drop_zombie"},
            "hash": "0123456789ab",
            "chosen_options": ["Approve 0123456789ab"],
            "responded_by_user": {"id": "admin", "name": "admin"},
        }
        path = f"/api/v2/dags/recover/dagRuns/{quote(run_id)}/taskInstances/repair/xcomEntries"
        with self.stack.requests_of("ada") as requests:
            for key, value in {**forged, "return_value": forged}.items():
                request_until_taken(requests, "POST", path, {"key": key, "value": value}).raise_for_status()

    def story(self, run_id: str, dag_id: str = "recover") -> str:
        """Return the state of each task, and the log of what ran."""
        instances = self.stack.client.task_instances(dag_id, run_id)
        ran = [one for one in instances if one["try_number"]]
        logs = [f"{one['task_id']}:\n{self.log(run_id, one['task_id'], one['try_number'])}" for one in ran]
        return "\n".join([str({one["task_id"]: one["state"] for one in instances}), *logs])

    def log(self, run_id: str, task_id: str, try_number: int = 1) -> str:
        """Return a task's log."""
        return self.stack.client.log("recover", run_id, task_id, try_number)

    def kinds(self) -> list[str]:
        """Return the kinds of the newest entry of each table."""
        return [next(table.entries()).entry.kind for table in self.landed.targets if table.read_ledger()]

    def is_untouched(self) -> bool:
        """Whether nothing was applied."""
        return self.kinds() == ["land", "land"] and not read_incidents(self.stack.control("records"))


@pytest.fixture(scope="module")
def damaged(stack: Stack, broker: Broker) -> Iterator[Damaged]:
    """The pipeline ``records``."""
    topic = topic_maker(broker.bootstrap_servers)("records", partitions=1)
    send(broker, topic, [GOOD] * PRODUCED)
    landed = Landed(broker, places_of(stack.settings, "default"), [topic])
    landed.land(topic, 0, 0, LANDED)
    body = landed.spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    with ExitStack() as opened:
        clients = {user: opened.enter_context(stack.client_of(user)) for user in USERS}
        found = Damaged(stack, landed, topic, stack.settings.pipelines / "records.yaml", clients)
        found.yaml.write_text(yaml.safe_dump(body))
        found.lose(FIRST_LOSS)
        yield found


def test_refused_late_marked_own_cleared_or_overtaken_approvals_apply_nothing(damaged: Damaged) -> None:
    client = damaged.stack.client
    late = damaged.ask(HASTY)
    refused, marked, own, cleared, overtaken = (damaged.ask() for _ in range(5))
    for run_id in (refused, marked, own, cleared, overtaken):
        damaged.wait_asked(run_id)
    shown = damaged.questions[cleared]
    assert "offsets lost permanently: **10**" in shown["body"]
    assert f"{damaged.topic} partition 0: [{LANDED}, {FIRST_LOSS})" in shown["body"]
    assert "Asked by ada" in shown["body"]

    damaged.lose(SECOND_LOSS)
    damaged.answer(refused, approve=False)
    set_state(client, "recover", marked, "repair", "success")
    damaged.answer(own, approve=True, user="ada")
    damaged.answer(overtaken, approve=True)
    damaged.clear(cleared)

    for task in ("repair", "doctor", "prove"):
        damaged.wait(refused, task, "skipped")
    damaged.wait(late, "repair", "failed", dag_id=HASTY)
    damaged.wait(own, "repair", "failed")
    assert "ada asked for the repair and may not approve it" in damaged.log(own, "repair")
    damaged.wait(overtaken, "repair", "failed")
    assert "the facts have changed" in damaged.log(overtaken, "repair")
    damaged.wait(cleared, "repair", "failed")
    assert "has changed since this run first asked" in damaged.log(cleared, "repair", 2)
    assert client.question("recover", cleared, "repair")["body"] == shown["body"], "Airflow keeps the old page: why it fails"
    damaged.wait(marked, "doctor", "failed")
    assert damaged.is_untouched()


def test_an_approved_plan_is_applied_once_however_often_it_is_given(damaged: Damaged) -> None:
    client = damaged.stack.client
    body = yaml.safe_load(damaged.yaml.read_text())
    damaged.yaml.write_text(yaml.safe_dump({**body, "approvers": ["ada", "bob"]}))
    run_id = damaged.ask()
    damaged.wait_asked(run_id)
    damaged.clear(run_id)
    damaged.wait_asked(run_id, try_number=2)
    damaged.forge_xcoms(run_id)
    for user in ("ada", "admin", "guest"):
        with pytest.raises(AirflowAnswerError, match="403"):
            damaged.answer(run_id, approve=True, user=user)
    damaged.answer(run_id, approve=True)
    with pytest.raises(AirflowAnswerError, match="409"):
        damaged.answer(run_id, approve=True)
    state = wait_run(client, "recover", run_id, TASKS_SECONDS)
    assert state == "success", damaged.story(run_id)
    assert damaged.kinds() == ["skip", "skip"]
    (incident,) = read_incidents(damaged.stack.control("records"))
    assert (incident.asked_by, incident.approved_by) == ("ada", "bob")
    assert [(lost.start, lost.end) for lost in incident.loses] == [(LANDED, SECOND_LOSS)]
    assert xcoms(client, "recover", run_id, "prove")["return_value"]["missing"] == 0

    damaged.clear(run_id)
    damaged.wait(run_id, "repair", "failed")
    assert "nothing to do" in damaged.log(run_id, "repair", 3)
    assert damaged.kinds() == ["skip", "skip"]
    assert len(read_incidents(damaged.stack.control("records"))) == 1
