"""The feature patterns: from one function the same rows in a topic in real time, in tables beside it, and in batches of both.

What the rows must be is computed here, and judged by the oracle. That a batch of the function's own gives them, too, is tested
in tests/spark/test_ready_transforms.py. In the long form alone: in the short one tests/spark/test_real_time_rows.py has what a
function makes in real time, and a pipeline goes from real time to batches and back in tests/chaos/test_real_time.py.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.kafka.journal import Journal, row_hash
from tests.support.kafka.makers import TopicMaker
from tests.support.kafka.producing import JournalingProducer, as_json
from tests.support.streams.applications import applications
from tests.support.streams.long_form import only_in_long_form
from tests.support.streams.pipelines import assert_exactly_once, make_pipeline
from tests.support.topics.reading import read_committed

from lakebound.local.broker import Broker

pytestmark = [pytest.mark.integration, only_in_long_form]

SCHEMA = "event_id STRING NOT NULL, device STRING, value DOUBLE, kind STRING, pad STRING"
KNOWN_DEVICES = 8
RowsOf = Callable[[dict[str, Any]], list[dict[str, Any]]]


def reading(number: int) -> dict[str, Any]:
    """Return a record: some are filtered by *encode*, and some are of a device that *enrich* does not know."""
    value = 36.0 + number % 20 / 10
    return {"event_id": f"{number:012}", "device": f"device-{number % 10}", "value": value, "kind": "straße", "pad": "x"}


def encoded(record: dict[str, Any]) -> list[dict[str, Any]]:
    if record["value"] <= 36.9:
        return []
    made = {
        "device": hashlib.sha256(record["device"].encode()).hexdigest(),
        "value": record["value"] * 1.8 + 32.0,
        "kind": "STRASSE",
        "part": record["event_id"][6:12],
    }
    return [{**record, **made}]


def enriched(record: dict[str, Any]) -> list[dict[str, Any]]:
    number = int(record["device"].removeprefix("device-"))
    is_known = number < KNOWN_DEVICES
    return [{**record, **{name: f"{name}-{number}" if is_known else None for name in ("site", "model")}}]


def write_devices(home: Path) -> None:
    """Write the reference table of *enrich*."""
    folder = home / "reference" / "devices"
    folder.mkdir(parents=True)
    columns = {name: [f"{name}-{number}" for number in range(KNOWN_DEVICES)] for name in ("device", "site", "model")}
    pq.write_table(pa.table(columns), folder / "devices.parquet")


@pytest.mark.parametrize(
    ("pattern", "rows_of", "columns"),
    [
        ("encode", encoded, ("part",)),
        ("enrich", enriched, ("site", "model")),
    ],
)
def test_a_pattern_gives_the_same_rows_in_real_time_in_tables_and_in_batches(
    tmp_path: Path, broker: Broker, topic: TopicMaker, pattern: str, rows_of: RowsOf, columns: tuple[str, ...]
) -> None:
    servers, journal = broker.bootstrap_servers, Journal()
    producer = JournalingProducer(servers, journal)
    source, written, bad = topic("readings", partitions=1), topic("sent"), topic("bad", partitions=1)
    pipeline = make_pipeline(
        tmp_path,
        servers,
        source,
        lane="driver",  # Spark plans the tables' batches beside the epochs; in tests/chaos/test_real_time.py the driver reads.
        value={"format": "json", "schema": SCHEMA},
        transform=f"transforms.{pattern}.clean",
        to_topics=[{"topic": written, "key": "event_id"}],
        freshness="real_time",
        real_time={"epoch": "5s", "tables": "500ms", "quarantine_topic": bad},
    )
    write_devices(pipeline.settings.home)

    def send(numbers: range) -> None:
        for number in numbers:
            record = reading(number)
            rows = rows_of(record)
            producer.send(source, as_json(record), rows=rows, fate="table" if rows else "nothing")
        producer.flush()

    with applications() as starter:
        send(range(200))
        both = starter.start(pipeline)
        both.wait_landed(journal.ends())
        send(range(200, 400))
        both.wait_landed(journal.ends())
        assert both.stop().verdict == "stopped", both
        send(range(400, 500))
        in_batches = starter.start(replace(pipeline, spec=pipeline.spec.model_copy(update={"freshness": "available_now"})))
        assert in_batches.ended().verdict == "completed", in_batches

    assert_exactly_once(pipeline, journal)
    nothing = dict.fromkeys((*reading(0), *columns))
    found = sorted((m.source, row_hash({**nothing, **json.loads(m.value)})) for m in read_committed(servers, written))
    expected = sorted(("/".join(map(str, (*r.place, n))), hashed) for r in journal.records for n, hashed in enumerate(r.rows))
    assert expected and found == expected
