"""Back to the version before: a table whose newest entry needs what this version does not know is refused by everything that
could misread it, each time by the name of what is needed; what need not be known is passed over."""

from __future__ import annotations

import time

import pytest
from tests.support.tables.local_tables import (
    TOPIC,
    TOPIC_ID,
    Lander,
    app_fixture,  # noqa: F401
    draft,
    landed_offsets,
    lander,
    pipeline_over,
)

from lakebound.control.folder import ControlFolder
from lakebound.errors import NewerEntryError
from lakebound.inspection.doctor.pipeline.collect import read_state
from lakebound.inspection.doctor.pipeline.ledger_facts import read_ledgers
from lakebound.inspection.doctor.pipeline.rules import diagnose
from lakebound.inspection.proof.collect import prove
from lakebound.landing.run_spec import RunSpec
from lakebound.ledger.topics import TopicFacts
from lakebound.operations.maintenance.engines import check_ledger
from lakebound.operations.maintenance.next_run import plan_now
from lakebound.operations.replay import prepare as replaying
from lakebound.operations.replay.bounds import parse_bound
from lakebound.settings import Settings, load_settings
from lakebound.spec.table import TableSpec
from lakebound.tables.commit import commit_entry
from lakebound.tables.places import Places
from lakebound.tables.table import open_table
from lakebound_spark.stream.opening import take_lease

REFUSED = r"was written by a later version of Lakebound .*it needs holes, which .*runbook newer-entry"


class Broker:
    """Kafka, which has all records of the topic."""

    def __init__(self, *_: object) -> None:
        """Connect to nothing."""

    def topics(self, names: object, **_: object) -> dict[str, TopicFacts]:
        """Return the topic."""
        return {TOPIC: TopicFacts(TOPIC_ID, {0: 0}, {0: 30})}


@pytest.fixture(params=["delta", "iceberg"])
def spec(request: pytest.FixtureRequest) -> TableSpec:
    return TableSpec(format=request.param, name="shop.orders")


@pytest.fixture
def settings(at: Places, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("LAKEBOUND_HOME", str(at.home))
    monkeypatch.setenv("LAKEBOUND_WAREHOUSE", str(at.warehouse.location))
    return load_settings()


def land_by_a_later_version(app: Lander) -> None:
    """Commit rows with an entry that requires what this version does not know."""
    entry = draft(10, 20).model_copy(update={"requires": ("holes",)})
    commit_entry(app.table, app.view, app.write(10, 20), entry, own_epoch=1, check_lease=lambda: None, attempts=1)


def test_all_that_reads_a_ledger_refuses_by_name_and_changes_nothing(
    app: Lander, spec: TableSpec, at: Places, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside, pipeline = lander(spec, at), pipeline_over(spec)
    land_by_a_later_version(app)
    control = ControlFolder(at.home, pipeline.pipeline)
    monkeypatch.setattr(replaying, "KafkaFacts", Broker)

    def replay() -> object:
        now_ms = round(time.time() * 1000)
        return replaying.prepare(pipeline, settings, *(parse_bound("--from", end, now_ms) for end in ("earliest", "latest")))

    refused = {
        "start": lambda: take_lease(RunSpec(spec=pipeline, places=at, app_id="orders-g0-1", freshness="1s")),
        "stream that runs": lambda: beside.land(20, 30),
        "replay": replay,
        "maintenance": lambda: check_ledger(spec, at),
    }
    for what, doing in refused.items():
        with pytest.raises(NewerEntryError, match=REFUSED):
            print(what, doing())
    (proof,) = (one for one in prove(pipeline, at, facts=Broker()).tables if one.table == spec.id)  # type: ignore[arg-type]
    assert not proof.ok and "it needs holes" in str(proof)
    planned = plan_now(pipeline, at)
    assert [step for step in planned.steps if step.table == spec.id] == []
    assert "it needs holes" in str(planned)
    control.folder.mkdir(parents=True, exist_ok=True)
    found = diagnose(read_state(pipeline, control, read_ledgers(pipeline, at), time.time()))
    (newer,) = (one for one in found.findings if one.rule == "entry-newer")
    assert (found.verdict, newer.verdict, newer.runbook) == ("needs_person", "needs_person", "newer-entry")
    assert landed_offsets(open_table(spec, at)) == list(range(20)), "nothing was written"
