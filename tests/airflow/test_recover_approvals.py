"""The DAG ``recover`` under a real Airflow: a plan is applied once, if it was approved and its facts still hold.

The pipeline has real tables and a real broker, and no application: what it lost to retention is what the plans are about.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from lakebound.control.incidents import read_incidents
from lakebound.control.processes import wait_until
from lakebound.local.airflow_client import AirflowAnswerError
from lakebound.local.broker import Broker
from lakebound.tables.places import places_of
from tests.airflow.conftest import HASTY, Stack
from tests.conftest import topic_maker
from tests.support.tables.landed import GOOD, Landed, send

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

    def lose(self, earliest: int) -> None:
        """Have Kafka delete everything before an offset."""
        admin = AdminClient({"bootstrap.servers": self.landed.broker.bootstrap_servers})
        admin.delete_records([TopicPartition(self.topic, 0, earliest)])[TopicPartition(self.topic, 0)].result(30)

    def ask(self, dag_id: str = "recover") -> str:
        """Trigger the DAG, and return the run's id."""
        return self.stack.client.trigger(dag_id, {"pipeline": self.landed.spec.pipeline, "action": "accept_loss", "deep": True})

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

    def wait_asked(self, run_id: str) -> None:
        """Wait until the run asks for approval, and the scheduler knows that the question's first half is over.

        Airflow fails a task that is answered before: it takes the end of the first half for that of the second
        (scheduler_job_runner.py, "finished with state success, but the task instance's state attribute is running").
        """
        self.wait(run_id, "approve", "awaiting_input")
        said = f"state success for task instance TaskInstanceKey(dag_id='recover', task_id='approve', run_id='{run_id}'"
        wait_until(lambda: said in self.stack.airflow.log.read_text(errors="replace"), 60, f"word of {said}", poll_seconds=0.5)

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
    landed = Landed(broker, places_of(stack.settings), [topic])
    landed.land(topic, 0, 0, LANDED)
    body = landed.spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    (stack.settings.pipelines / "records.yaml").write_text(yaml.safe_dump(body))
    found = Damaged(stack, landed, topic)
    found.lose(FIRST_LOSS)
    yield found


def test_refused_late_marked_or_overtaken_approvals_apply_nothing(damaged: Damaged) -> None:
    client = damaged.stack.client
    late = damaged.ask(HASTY)
    refused, marked, overtaken = damaged.ask(), damaged.ask(), damaged.ask()
    for run_id in (refused, marked, overtaken):
        damaged.wait_asked(run_id)
    body = client.question("recover", refused, "approve")["body"]
    assert "offsets lost permanently: **10**" in body
    assert f"{damaged.topic} partition 0: [{LANDED}, {FIRST_LOSS})" in body

    client.answer("recover", refused, "approve", "Reject")
    client.set_state("recover", marked, "approve", "success")
    damaged.lose(SECOND_LOSS)
    client.answer("recover", overtaken, "approve", "Approve")

    for task in ("apply", "doctor", "prove"):
        damaged.wait(refused, task, "skipped")
    damaged.wait(late, "approve", "failed", dag_id=HASTY)
    damaged.wait(late, "apply", "upstream_failed", dag_id=HASTY)
    damaged.wait(marked, "apply", "failed")
    assert "has no approval" in damaged.log(marked, "apply")
    damaged.wait(overtaken, "apply", "failed")
    assert "the facts have changed" in damaged.log(overtaken, "apply")
    assert damaged.is_untouched()


def test_an_approved_plan_is_applied_once_however_often_it_is_given(damaged: Damaged) -> None:
    client = damaged.stack.client
    run_id = damaged.ask()
    damaged.wait_asked(run_id)
    client.answer("recover", run_id, "approve", "Approve")
    with pytest.raises(AirflowAnswerError, match="409"):
        client.answer("recover", run_id, "approve", "Approve")
    state = client.wait_run("recover", run_id, TASKS_SECONDS)
    assert state == "success", damaged.story(run_id)
    assert damaged.kinds() == ["skip", "skip"]
    (incident,) = read_incidents(damaged.stack.control("records"))
    assert (incident.approved_by, [(lost.start, lost.end) for lost in incident.loses]) == ("admin", [(LANDED, SECOND_LOSS)])
    assert client.xcoms("recover", run_id, "prove")["return_value"]["missing"] == 0

    client.clear("recover", run_id, ["apply"])
    damaged.wait(run_id, "apply", "failed")
    assert "nothing to do" in damaged.log(run_id, "apply", 2)
    assert damaged.kinds() == ["skip", "skip"]
    assert len(read_incidents(damaged.stack.control("records"))) == 1
