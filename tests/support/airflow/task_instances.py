"""What the operators of the streams use of Airflow, in its place: a task instance, the states of tasks, the alerts sent."""

from __future__ import annotations

from typing import Any

import pytest

from lakebound.control.folder import ControlFolder
from lakebound.settings import Settings
from lakebound_airflow.backends.target import Target
from lakebound_airflow.hooks import task_state
from lakebound_airflow.operators import guard as guard_module
from lakebound_airflow.operators import stream as stream_module
from lakebound_airflow.triggers.stream_watch import StreamWatch
from tests.support.streams.stand_ins import orders


class FakeTi:
    """What the operators use of a task instance."""

    def __init__(self, run_id: str = "run-1", try_number: int = 1, task_id: str = "stream") -> None:
        self.dag_id, self.run_id, self.task_id, self.try_number = "ingest__orders", run_id, task_id, try_number
        self.pushed: dict[str, Any] = {}

    def xcom_push(self, key: str, value: Any) -> None:
        """Keep it."""
        self.pushed[key] = value

    def xcom_pull(self, task_ids: str, key: str) -> Any:
        """Return what was kept."""
        return self.pushed.get(key)


Alerts = list[tuple[str, str]]
States = dict[str, str]


@pytest.fixture(name="sent")
def sent_fixture(monkeypatch: pytest.MonkeyPatch) -> Alerts:
    """The alerts that were sent: verdict and reason."""
    found: Alerts = []

    def alert(_: Any, __: Any, verdict: str, reason: str, app_id: str | None = None, **___: Any) -> None:
        found.append((verdict, reason))

    monkeypatch.setattr(stream_module, "alert", alert)
    monkeypatch.setattr(guard_module, "alert", alert)
    return found


@pytest.fixture(name="states")
def states_fixture(monkeypatch: pytest.MonkeyPatch) -> States:
    """Airflow's task states, per run."""
    found: States = {}
    for module in (stream_module, guard_module, task_state):
        monkeypatch.setattr(module, "state_of_owner", lambda owner: found.get(owner.run_id))
    monkeypatch.setattr(stream_module, "choose_target", lambda *_: Target())
    monkeypatch.setattr(StreamWatch, "look_outside", lambda _: None)
    return found


@pytest.fixture(name="control")
def control_fixture(settings: Settings) -> ControlFolder:
    """The folder of state of the pipeline ``orders``."""
    return orders(settings).control


def context(ti: FakeTi) -> dict[str, Any]:
    """Return of Airflow's context what the operators use."""
    return {"ti": ti}
