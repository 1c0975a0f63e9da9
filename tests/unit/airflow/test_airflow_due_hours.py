"""Which hours a run of ``hours__<pipeline>`` announces, and what is noted then."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lakebound.control.complete_hours import Announcement, CompleteHours, HourSpan, TableHours
from lakebound_airflow.assets import hours_due_asset
from lakebound_airflow.operators import complete_hours as operators

pytestmark = pytest.mark.unit

TABLE = "delta:lake.orders"
HOURS = [
    Announcement(hour=HourSpan().key(490_000 + number), number=number, version="1", announced_at_ms=0) for number in range(1, 9)
]


def test_an_hour_that_is_asked_for_again_hides_none_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """More are due than one run announces, and somebody asks for one that was announced and for the last."""
    state = CompleteHours(tables={TABLE: TableHours(next_hour=0, announced=tuple(HOURS))})
    monkeypatch.setattr(operators, "read_complete_hours", lambda control: state)
    monkeypatch.setattr(operators, "control_of", lambda pipeline, settings: None)
    monkeypatch.setattr(operators, "load_settings", SimpleNamespace)
    monkeypatch.setattr(operators, "MOST_AT_ONCE", 3)
    noted: dict[str, Any] = {f"{operators.RECORDED}{TABLE}": 2}
    store = SimpleNamespace(get=noted.get, set=noted.__setitem__)
    context = {"asset_state_store": {hours_due_asset("orders"): store}, "params": {"hours": [HOURS[0].hour, HOURS[7].hour]}}
    due = operators.DueHoursOperator(task_id="due", pipeline="orders", table=TABLE)
    told = []
    for _ in range(2):
        found = due.execute(context)
        told.append([one["number"] for one in found])
        operators.RecordHoursOperator(task_id="record", pipeline="orders", table=TABLE, announced=found).execute(context)
    assert told == [[3, 4, 5, 1], [6, 7, 8, 1]]
