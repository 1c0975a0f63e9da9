"""On call without Airflow: trouble, the message of `lakebound watch`, the page that it names, its commands, and the end.

One broker, one pipeline and one watch; the tests run in this order, because what happens soon after an outage counts as its
consequence. The watch runs a round each second and holds nothing back; with the defaults a person waits up to a minute longer
for the round, and another minute for what the stream's own end does not tell. The short form does not wait until the
application that was started by hand has run for two minutes: that the death before is over then is in
tests/unit/alerts/test_alerts_sources.py.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from tests.support.airflow.receivers import WebhookEndpoint
from tests.support.airflow.watching import RunningWatch
from tests.support.kafka.brokers import ShortLivedBroker
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import topic_maker
from tests.support.kafka.producing import JournalingProducer, as_json, event, send_events
from tests.support.runbook_pages import FOLDER, REPOSITORY, commands
from tests.support.streams.command_line import lakebound
from tests.support.streams.long_form import LONG_FORM, only_in_long_form
from tests.support.streams.pipelines import ANY_LANE, Pipeline, assert_exactly_once, make_pipeline

from lakebound.control.applications import living_submission, stop_streams
from lakebound.control.processes import wait_until
from lakebound.control.progress import readable_progress
from lakebound.errors import DeadlineExceededError
from lakebound.local.broker import Broker

pytestmark = pytest.mark.integration

AT_ONCE = {"open_after_seconds": 0, "resolve_after_seconds": 0}
SECRET = "DE02-1203"
FLOOD = {"quarantine_rate": {"over_seconds": 10}}
Measure = Callable[[str, object], None]


@dataclass(frozen=True)
class OnCall:
    """What a person on call has, and the trouble that a test makes."""

    pipeline: Pipeline
    broker: Broker
    hook: WebhookEndpoint
    watching: RunningWatch
    journal: Journal

    def told(self, kind: str, runbook: str, since: float, deadline_seconds: float) -> float:
        """Return how many seconds after a moment the first message of a kind came that names a page."""

        def message() -> float | None:
            said = [(at, body["kind"], body["runbook"]) for at, body in self.hook.of("events") if at >= since]
            return next((at for at, *words in said if words == [kind, runbook]), None)

        try:
            at = wait_until(message, deadline_seconds, f"the message {kind} {runbook}")
        except DeadlineExceededError as exc:
            exc.add_note(f"messages: {self.hook.bodies}\nthe watch: {self.watching.said}")
            raise
        assert at is not None
        return at - since

    def do(self, page: str, *words: str) -> str:
        """Run a command that a page prints, for this pipeline, and return what it says."""
        assert list(words) in list(commands(FOLDER / f"{page}.md")), f"{page} does not say {words}"
        return lakebound(*("events" if word == "P" else word for word in words[1:])).stdout

    def send(self, numbers: range) -> None:
        """Send good records."""
        send_events(JournalingProducer(self.broker.bootstrap_servers, self.journal), self.pipeline.spec.topics[0], numbers)

    def send_bad(self, count: int) -> None:
        """Send records whose amount is a text."""
        producer = JournalingProducer(self.broker.bootstrap_servers, self.journal)
        for number in range(count):
            producer.send(self.pipeline.spec.topics[0], as_json({**event(number), "amount": SECRET}), fate="quarantine")
        producer.flush()

    def has_landed(self) -> bool:
        """Whether the application says that it has read all that was sent."""
        progress = readable_progress(self.pipeline.control)
        marks = progress.high_water_marks if progress is not None else {}
        ends = self.journal.ends()
        return all(marks.get(t, {}).get(p, 0) >= end for t, own in ends.items() for p, end in own.items())


@pytest.fixture(scope="module")
def on_call(tmp_path_factory: pytest.TempPathFactory, jars: Path) -> Iterator[OnCall]:
    """A pipeline that lands, and a watch that tells an endpoint; no Airflow is set up."""
    folder, journal, hook = tmp_path_factory.mktemp("on_call"), Journal(), WebhookEndpoint()
    broker = ShortLivedBroker(folder / "broker", jars)
    broker.start()
    topic = topic_maker(broker.bootstrap_servers)("on_call")
    made = make_pipeline(folder, broker.bootstrap_servers, topic, lane=ANY_LANE, objectives=FLOOD)
    (folder / "pipelines").mkdir()
    body = made.spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    (folder / "pipelines" / "events.yaml").write_text(yaml.safe_dump(body))
    routes = {"channels": {"hook": {"webhook": {"connection": "ops_hook"}}}, "routes": [{"to": ["hook"]}], "policy": AT_ONCE}
    (folder / "alerts.yaml").write_text(yaml.safe_dump(routes))
    send_events(JournalingProducer(broker.bootstrap_servers, journal), made.spec.topics[0], range(300))
    address = {"conn_type": "http", "host": f"http://127.0.0.1:{hook.port}/hook"}
    with pytest.MonkeyPatch.context() as patch:
        environment = {
            **made.settings.environment(),
            "LAKEBOUND_PIPELINES": str(folder / "pipelines"),
            "AIRFLOW_HOME": str(folder / "airflow"),
            "AIRFLOW_CONN_OPS_HOOK": json.dumps(address),
        }
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.chdir(REPOSITORY)
        watching = RunningWatch(folder / "watch.log", "--interval", "1")
        try:
            lakebound("run", "events", "--detach")
            found = OnCall(made, broker, hook, watching, journal)
            wait_until(found.has_landed, 150, "the first records")
            assert hook.bodies == []
            yield found
        finally:
            watching.process.kill()
            watching.process.wait()
            stop_streams(made.settings, deadline_seconds=20)
            broker.stop()
            hook.close()


def test_an_application_that_dies_is_told_and_the_pages_command_starts_another(
    on_call: OnCall, record_property: Measure
) -> None:
    found = living_submission(on_call.pipeline.control)
    assert found is not None and found.pid is not None
    died_at = time.time()
    os.killpg(found.pid, signal.SIGKILL)
    seconds = on_call.told("opened", "application-dead", died_at, 60)
    assert all(one["runbook"] != "refused" for one in on_call.hook.bodies)
    on_call.do("application-dead", "lakebound", "run", "P", "--detach")
    on_call.send(range(300, 400))
    wait_until(on_call.has_landed, 150, "the records that were sent after its death")
    measure(record_property, "dead", seconds, time.time() - died_at)


@only_in_long_form  # shortly: test_a_flood_of_bad_records_is_told_by_status_doctor_and_alerts in test_control.py
def test_a_flood_of_bad_records_is_told_and_so_is_its_end(on_call: OnCall, record_property: Measure) -> None:
    flooded_at = time.time()
    on_call.send_bad(60)
    seconds = on_call.told("opened", "quarantine-flood", flooded_at, 60)
    assert "does_not_fit: amount" in on_call.do("quarantine-flood", "lakebound", "status", "P")
    assert "does_not_fit" in on_call.do("quarantine-flood", "lakebound", "quarantine", "P")
    assert not any(SECRET in json.dumps(body) for body in on_call.hook.bodies), "no record leaves its table"
    ended_at = time.time()
    measure(record_property, "flood", seconds, on_call.told("resolved", "quarantine-flood", ended_at, 60))


def test_a_broker_that_goes_away_is_told_and_so_is_its_return(on_call: OnCall, record_property: Measure) -> None:
    away_at = time.time()
    on_call.broker.kill()
    seconds = on_call.told("opened", "broker-unavailable", away_at, 60)
    assert "waiting" in on_call.do("broker-unavailable", "lakebound", "status", "P")
    back_at = time.time()  # The application may find the broker before this test's producer does.
    on_call.broker.start()
    on_call.send(range(400, 500))
    measure(record_property, "broker away", seconds, on_call.told("resolved", "broker-unavailable", back_at, 240))
    wait_until(on_call.has_landed, 60, "the records that were sent when it was back")


def test_nothing_was_lost_or_doubled_and_nothing_was_told_twice(on_call: OnCall) -> None:
    wait_until(on_call.has_landed, 60, "all records")
    if LONG_FORM:  # The application that was started by hand must have run for two minutes.
        on_call.told("resolved", "application-dead", 0.0, 180)
    for page in ("application-dead", "broker-unavailable", *(["quarantine-flood"] if LONG_FORM else [])):
        kinds = [body["kind"] for body in on_call.hook.bodies if body["runbook"] == page]
        # As nothing is held back here, what stops for a moment may come again: but nothing twice in a row.
        assert kinds and kinds == (["opened", "resolved"] * len(kinds))[: len(kinds)], (page, kinds)
        assert kinds[-1] == "resolved" or (page == "application-dead" and not LONG_FORM), (page, kinds)
    assert on_call.watching.stop() == 0
    lakebound("stop", "events")
    assert_exactly_once(on_call.pipeline, on_call.journal)


def measure(record_property: Measure, what: str, opened: float, over: float) -> None:
    """Keep how long it took until the message, and until the trouble was over or its end was told."""
    record_property(what, {"seconds to the message": round(opened, 1), "seconds until it was over": round(over, 1)})
    print(f"{what}: message after {opened:.1f} s; over after {over:.1f} s")
