"""What a pipeline with ``state`` may be together with, and what is asked of it that goes by offsets of rows."""

from __future__ import annotations

from typing import Any, cast

import pytest
from pydantic import ValidationError

from lakebound.cli.trial import try_pipeline
from lakebound.errors import WithStateError
from lakebound.operations.erase import prepare as erasure
from lakebound.operations.recovery.apply import apply_recovery, plan_recovery
from lakebound.operations.recovery.plan import RepairAction
from lakebound.operations.recovery.rewind import facts as rewind
from lakebound.operations.redo import prepare as redo
from lakebound.operations.release import plan as release
from lakebound.operations.replay import prepare as replay
from lakebound.settings import load_settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.state import _INSTEAD, StateSpec, check_stateless, cluster_problem
from lakebound.tables.places import places_of

BODY: dict[str, Any] = {
    "pipeline": "minutes",
    "topics": ["readings"],
    "connection": {"bootstrap_servers": "kafka:9092"},
    "value": {"format": "json", "schema": "at TIMESTAMP, sensor STRING"},
    "freshness": "1s",
    "transform": "transforms.minutes.per_minute",
    "state": {"event_time": "at", "watermark": "10m"},
    "tables": [{"format": "delta", "name": "iot.minutes"}],
}


def test_times_are_told_in_milliseconds() -> None:
    state = PipelineSpec.model_validate(BODY).state
    assert state is not None
    assert (state.watermark_ms, state.max_ahead_ms) == (600_000, 300_000)
    assert StateSpec(event_time="at", watermark="1d").max_ahead_ms == 3_600_000
    assert StateSpec(event_time="at", watermark="500ms", max_ahead="2d").max_ahead_ms == 172_800_000


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"transform": None}, "state"),
        ({"topics": ["a", "b"]}, "topics"),
        ({"to_topics": [{"topic": "minutes", "key": "sensor"}]}, "to_topics"),
        ({"tables": [], "to_topics": [{"topic": "minutes", "key": "sensor"}]}, "to_topics"),
        ({"reference": {"shops": {"format": "delta", "name": "shop.shops", "key": ["id"]}}}, "reference"),
        ({"complete_hours": {"column": "at"}}, "complete_hours"),
        ({"null_values": "row"}, "null_values"),
        ({"value": {"format": "avro", "registry": "company"}}, "value"),
        ({"key": {"format": "avro", "registry": "company"}}, "key"),
        ({"state": {"event_time": "at", "watermark": "soon"}}, "state.watermark"),
        ({"state": {"event_time": "a.b", "watermark": "1m"}}, "state.event_time"),
    ],
    ids=lambda found: found if isinstance(found, str) else "",
)
def test_what_state_cannot_be_together_with_is_named(changes: dict[str, Any], key: str) -> None:
    with pytest.raises(ValidationError) as caught:
        PipelineSpec.model_validate({**BODY, **changes})
    error = caught.value.errors()[0]
    place = ".".join(map(str, error["loc"]))
    assert key == place or f"{key}: " in error["msg"], error


@pytest.mark.parametrize("action", sorted(_INSTEAD))
def test_actions_that_go_by_offsets_are_refused_with_a_way_out(action: str) -> None:
    with pytest.raises(WithStateError, match=action):
        check_stateless(PipelineSpec.model_validate(BODY), action)
    check_stateless(PipelineSpec.model_validate({**BODY, "state": None}), action)


@pytest.mark.parametrize("action", ["rebase", "accept_loss", "new_incarnation"])
def test_repairs_that_move_offsets_are_refused_before_anything_is_read(action: RepairAction) -> None:
    spec = PipelineSpec.model_validate(BODY)
    with pytest.raises(WithStateError, match=action):
        plan_recovery(spec, load_settings({}), action)
    with pytest.raises(WithStateError, match=action):
        apply_recovery(spec, load_settings({}), action, "a plan", by="test")


def test_commands_that_go_by_offsets_are_refused_before_anything_is_read() -> None:
    spec, settings = PipelineSpec.model_validate(BODY), load_settings({})
    places, nothing = places_of(settings, spec.warehouse), cast("Any", None)
    with pytest.raises(WithStateError, match="no replay; to compute windows anew"):
        replay.prepare(spec, settings, nothing, nothing)
    with pytest.raises(WithStateError, match="no redo; a changed transform"):
        redo.prepare(spec, settings, nothing)
    with pytest.raises(WithStateError, match="no release from quarantine; late records"):
        release.prepare(spec, places)
    with pytest.raises(WithStateError, match="no rewind; open windows"):
        rewind.make_plan(spec, places, nothing)
    with pytest.raises(WithStateError, match="no erasure; delete the keys"):
        erasure.prepare(spec, places, "sensor = 's1'")
    with pytest.raises(WithStateError, match="no trial; run lakebound check"):
        try_pipeline(spec, settings, records=1, newest=True, rows=1)


def test_a_cluster_is_refused_with_the_line_that_works() -> None:
    spec = PipelineSpec.model_validate(BODY)
    assert "LAKEBOUND_SPARK_MASTER=local[2]" in (cluster_problem(spec, local=False) or "")
    assert cluster_problem(spec, local=True) is None
    stateless = PipelineSpec.model_validate({**BODY, "state": None})
    assert cluster_problem(stateless, local=False) is None
