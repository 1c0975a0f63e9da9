"""What the application says of a table's hours is what its ledger says, whoever landed the rows and whoever was killed."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from tests.support.tables.hourly_rows import BEGIN_MS, land_hours
from tests.support.tables.local_tables import TOPIC, TOPIC_ID, Lander, lander, make_table
from tests.support.tables.restoring import reset

from lakebound.control.complete_hours import TableHours
from lakebound.control.complete_hours_file import read_complete_hours
from lakebound.control.folder import ControlFolder
from lakebound.errors import BrokerUnavailableError, LeaseLostError
from lakebound.landing.complete_hours_watch import CompleteHoursKeeper
from lakebound.ledger.hours import HOUR_MS
from lakebound.ledger.topics import TopicFacts
from lakebound.spec.complete_hours import CompleteHoursSpec
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places
from lakebound.tables.table import open_table

WANTED = CompleteHoursSpec(column="at", grace="5m")


@dataclass
class Scene:
    """A table whose rows of ``at`` lie an hour apart, a clock, and what Kafka is said to have."""

    spec: TableSpec
    places: Places
    control: ControlFolder
    app: Lander
    now_ms: int = BEGIN_MS
    end: int = 0
    topic: str = TOPIC
    is_away: bool = False
    lease_is_lost: bool = False
    asked: list[int] = field(default_factory=list)

    def ends(self) -> dict[str, TopicFacts]:
        if self.is_away:
            raise BrokerUnavailableError("nowhere:9092", "test")
        self.asked.append(self.now_ms)
        return {self.topic: TopicFacts(topic_id=TOPIC_ID, earliest={0: 0}, latest={0: self.end})}

    def check_lease(self) -> None:
        if self.lease_is_lost:
            raise LeaseLostError("orders", 1, 2)

    def application(self) -> CompleteHoursKeeper:
        """Another application: it knows what is in the files and the tables."""
        spec = {
            "pipeline": "orders",
            "topics": [self.topic],
            "connection": {"bootstrap_servers": "nowhere:9092"},
            "value": {"format": "bytes"},
            "freshness": "1s",
            "tables": [self.spec.model_dump(mode="json")],
            "complete_hours": WANTED.model_dump(mode="json"),
        }
        parsed = PipelineSpec.model_validate(spec)
        return CompleteHoursKeeper(
            parsed, WANTED, self.places, self.control, self.ends, self.check_lease, lambda: self.now_ms / 1000
        )

    def land(self, start: int, end: int) -> str:
        """Land offsets; the row of offset n belongs to hour n."""
        return land_hours(self.app, start, end, self.now_ms)

    def told(self, keeper: CompleteHoursKeeper) -> list[tuple[str, str, bool]]:
        """Look, and return what is written down: hour, version, whether it is a further time."""
        keeper.look()
        state = read_complete_hours(self.control)
        assert state is not None
        found: TableHours = state.tables[self.spec.id]
        return [(one.hour, one.version, one.further) for one in found.announced]

    def pass_to(self, hours: int, minutes: int) -> None:
        self.now_ms = BEGIN_MS + hours * HOUR_MS + minutes * 60_000


@pytest.fixture
def scene(spec: TableSpec, at: Places, tmp_path) -> Scene:  # type: ignore[no-untyped-def]
    make_table(spec, at)
    app = lander(spec, at)
    app.open()
    return Scene(spec, at, ControlFolder(tmp_path / "home", "orders"), app)


def hour(number: int) -> str:
    return datetime.fromtimestamp(BEGIN_MS / 1000 + number * 3600, UTC).strftime("%Y-%m-%dT%H")


def test_an_hour_is_told_when_kafka_of_that_time_has_landed_and_again_when_rows_came_late(scene: Scene) -> None:
    first = scene.application()
    assert scene.told(first) == []
    scene.end = 1
    scene.land(0, 1)
    scene.pass_to(1, 4)
    assert scene.told(first) == []
    assert scene.asked == [], "Kafka is asked when an hour's grace is over"
    scene.pass_to(1, 5)
    scene.end = 2
    assert scene.told(first) == [], "one record waits"
    # Killed while it waited: the next application waits for the same ends, although more have come since.
    second, scene.end = scene.application(), 3
    scene.pass_to(1, 30)
    assert scene.told(second) == []
    version = scene.land(1, 2)
    assert scene.told(second) == [(hour(0), version, False)]
    # The hour after it is empty. A row of hour 0 lands late: it is told again, once the grace is over.
    late = scene.land(2, 3)
    scene.pass_to(2, 5)
    assert scene.told(second) == [(hour(0), version, False), (hour(1), late, False)]
    scene.pass_to(3, 10)
    assert [told[0] for told in scene.told(scene.application())] == [hour(0), hour(1), hour(2)]


def test_late_rows_of_a_guest_are_told_after_the_grace(scene: Scene) -> None:
    keeper = scene.application()
    scene.told(keeper)
    scene.end = 2
    scene.pass_to(2, 5)
    before = scene.land(0, 1)
    assert scene.told(keeper) == []
    before = scene.land(1, 2)
    assert scene.told(keeper) == [(hour(0), before, False), (hour(1), before, False)]
    # A row of hour 0 is landed by somebody else, while no application runs.
    late = land_hours(scene.app, 0, 1, scene.now_ms, partition=1, kind="replay")
    keeper = scene.application()
    assert len(scene.told(keeper)) == 2
    scene.pass_to(2, 11)
    assert scene.told(keeper) == [(hour(1), before, False), (hour(0), late, True)]
    scene.pass_to(2, 30)
    assert len(scene.told(keeper)) == 2, "once"


def test_what_cannot_be_found_out_now_is_not_lost(scene: Scene) -> None:
    keeper = scene.application()
    scene.told(keeper)
    scene.pass_to(1, 5)
    scene.is_away = True
    with pytest.raises(BrokerUnavailableError):
        keeper.look()
    scene.is_away, scene.lease_is_lost = False, True
    with pytest.raises(LeaseLostError):
        keeper.look()
    assert read_complete_hours(scene.control).tables[scene.spec.id].announced == ()  # type: ignore[union-attr]
    scene.lease_is_lost = False
    assert [told[0] for told in scene.told(keeper)] == [hour(0)]


def test_a_topic_that_the_pipeline_reads_no_longer_is_not_waited_for(scene: Scene) -> None:
    keeper = scene.application()
    scene.told(keeper)
    scene.pass_to(1, 5)
    scene.end = 1
    assert scene.told(keeper) == [], "one record waits"
    scene.topic, scene.end = "returns", 0
    assert [told[0] for told in scene.told(scene.application())] == [hour(0)]


def test_a_rewind_tells_the_hours_again_though_as_many_offsets_have_landed_since(scene: Scene) -> None:
    """The same offsets, landed by a transform that was mended, may be other rows, and nobody looked in between."""
    keeper = scene.application()
    scene.told(keeper)
    target = scene.land(0, 1)
    scene.land(1, 2)
    scene.end = 2
    scene.pass_to(2, 5)
    assert [told[0] for told in scene.told(keeper)] == [hour(0), hour(1)]
    open_table(scene.spec, scene.places).restore(target, reset(1))
    scene.app = lander(scene.spec, scene.places, epoch=3)
    version, keeper = scene.land(1, 2), scene.application()
    scene.told(keeper)
    scene.pass_to(2, 11)
    assert scene.told(keeper) == [(hour(0), version, True), (hour(1), version, True)]


def test_the_file_shows_that_somebody_looks_also_after_the_clock_was_set_back(scene: Scene) -> None:
    keeper = scene.application()
    scene.pass_to(0, 50)
    keeper.look()
    scene.pass_to(0, 20)
    assert keeper.look().looked_at_ms == scene.now_ms
