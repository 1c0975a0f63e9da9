"""A transform that raises on records, under a real Airflow: to search for them is no stall; one that takes none says why."""

from __future__ import annotations

import pytest
import yaml

from lakebound.control.folder import write_json
from lakebound.control.progress import SearchProgress, read_outcome, read_progress
from lakebound.control.status import pipeline_statuses
from lakebound.local.broker import Broker
from lakebound.spec.load import load_pipelines
from lakebound_airflow.pipelines import spec_of
from lakebound_airflow.triggers.stream import POLL_SECONDS
from lakebound_airflow.triggers.stream_watch import OUTSIDE_LOOK_SECONDS
from tests.support.airflow.real_stack import Stack, insist
from tests.support.airflow.stack_folder import SEARCHES
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import TopicMaker
from tests.support.kafka.producing import JournalingProducer, as_json
from tests.support.streams.long_form import LONG_FORM
from tests.support.streams.pipelines import Pipeline, assert_exactly_once
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.timeout(420),
    pytest.mark.skipif(not LONG_FORM, reason="the real application takes two minutes here: in the long form"),
]

STARTS = ("spark_apps/ingest_stream.py",)
"""What its processes run; see tests/support/reached_tests.py."""
STALL_SECONDS = 15.0
SEEN_SECONDS = OUTSIDE_LOOK_SECONDS + STALL_SECONDS + POLL_SECONDS
"""After so long, the watch would have called a search a stall."""
WARM_UP, RECORDS, BAD_EVERY = 16, 256, 16


def test_a_search_is_no_stall_and_a_transform_that_takes_no_record_ends_with_its_cause(
    stack: Stack, broker: Broker, topic: TopicMaker
) -> None:
    name, journal = topic("searched"), Journal()
    write_pipeline(stack, broker, name)
    write_json(stack.control(SEARCHES).folder / "behaviour.json", {"is_real": True})
    producer = JournalingProducer(broker.bootstrap_servers, journal)
    send(producer, name, range(WARM_UP), bad_every=None)
    insist(lambda: stack.client.unpause(f"ingest__{SEARCHES}"))
    first = stack.running(SEARCHES)
    wait_until(lambda: stack.progress(SEARCHES).records == WARM_UP, 90, "a first batch, so that the JVM is warm")
    send(producer, name, range(WARM_UP, WARM_UP + RECORDS), bad_every=BAD_EVERY)
    wait_until(lambda: (found := search_of(stack)) is not None and not found.is_over, 60, "the search")
    [status] = pipeline_statuses(stack.settings, SEARCHES, {}, load_pipelines(stack.settings))
    assert any("which are searched for since" in note for note in status.notes), status.notes
    wait_until(lambda: stack.progress(SEARCHES).quarantined == RECORDS // BAD_EVERY, 90, "the end of the search")
    search = search_of(stack)
    assert search is not None
    assert search.changed_at - search.since > SEEN_SECONDS, "it was too short to be taken for a stall: nothing was tested"
    assert stack.running(SEARCHES).app_id == first.app_id
    assert_exactly_once(Pipeline(spec_of(SEARCHES, stack.settings), stack.settings), journal)

    send(producer, name, range(WARM_UP + RECORDS, WARM_UP + RECORDS + 64), bad_every=1)
    told = lambda: [body for _, body in stack.sink.of(SEARCHES)]  # noqa: E731
    refused = wait_until(lambda: [body for body in told() if body["verdict"] == "refused"], 60, "the alert")[0]
    outcome = read_outcome(stack.control(SEARCHES), first.app_id)
    assert outcome is not None and outcome.verdict == "refused"
    assert (refused["app_id"], refused["runbook"], refused["reason"]) == (first.app_id, "quarantine-flood", outcome.reason)
    assert "CAST_INVALID_INPUT" in refused["reason"]
    assert [body["verdict"] for body in told()] == ["refused"]
    stack.client.pause(f"ingest__{SEARCHES}")


def write_pipeline(stack: Stack, broker: Broker, topic: str) -> None:
    """Write the broker's address and the topic into the pipeline's YAML, which a start reads."""
    file = stack.settings.pipelines / f"{SEARCHES}.yaml"
    body = yaml.safe_load(file.read_text())
    changes = {
        "topics": [topic],
        "connection": {"bootstrap_servers": broker.bootstrap_servers},
        "thresholds": {"stall_seconds": STALL_SECONDS},
    }
    file.write_text(yaml.safe_dump({**body, **changes}))


def send(producer: JournalingProducer, topic: str, numbers: range, *, bad_every: int | None) -> None:
    """Send records; the transform raises on each so many-th, where that is given."""
    for number in numbers:
        is_bad = bad_every is not None and number % bad_every == bad_every // 3
        value = as_json({"id": number, "text": "none" if is_bad else str(number)})
        producer.send(topic, value, rows=[] if is_bad else [{"id": number, "number": number}])
    producer.flush()


def search_of(stack: Stack) -> SearchProgress | None:
    progress = read_progress(stack.control(SEARCHES))
    return progress.search if progress is not None else None
