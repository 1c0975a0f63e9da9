"""The test's producer: sends records and keeps the journal from the broker's delivery reports."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaException, Producer

from tests.support.kafka.journal import Acknowledged, Fate, Journal, row_hashes, value_hash

FLUSH_SECONDS = 120.0
EVENT_SCHEMA = "id BIGINT NOT NULL, body STRING NOT NULL, amount DOUBLE, tags ARRAY<STRING>"
"""Of the records that ``event`` makes."""

BAD_EVERY = 50
"""Each so many-th record of a load cannot be decoded."""

_LOAD_SECONDS = 0.1
"""How often a load sends what is due: each time costs the broker a request per partition."""


class JournalingProducer:
    """Sends records; what the broker acknowledges (and commits, in a transaction) goes into the journal."""

    def __init__(
        self, bootstrap_servers: str, journal: Journal, *, transactional_id: str | None = None, **config: object
    ) -> None:
        settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap_servers,
            "enable.idempotence": True,
            "linger.ms": 5,
            "message.max.bytes": 4 * 1024 * 1024,
            "log_level": 0,
            **{name.replace("_", "."): value for name, value in config.items()},
        }
        if transactional_id:
            settings["transactional.id"] = transactional_id
        self._producer = Producer(settings)
        self._journal = journal
        self._acknowledged: list[Acknowledged] = []
        self._errors: list[str] = []
        if transactional_id:
            self._producer.init_transactions(FLUSH_SECONDS)

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        rows: Sequence[Mapping[str, Any]] = (),
        fate: Fate | None = None,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> None:
        """Send one record that must give these rows; one without rows must end in quarantine unless ``fate`` says else."""
        fate = fate or ("table" if rows else "quarantine")
        hashes, sha256 = row_hashes(rows), value_hash(value)

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                self._errors.append(str(error))
                return
            place = (message.topic(), message.partition(), message.offset())
            self._acknowledged.append(Acknowledged(place, sha256, fate, hashes))

        where = {} if partition is None else {"partition": partition}
        where |= {} if timestamp is None else {"timestamp": timestamp}
        while True:
            try:
                self._producer.produce(topic, value=value, key=key, on_delivery=delivered, **where)
                break
            except BufferError:
                self._producer.poll(0.1)
        self._producer.poll(0)

    def flush(self) -> None:
        """Wait until everything sent is acknowledged, and write it into the journal."""
        left = self._producer.flush(FLUSH_SECONDS)
        assert left == 0 and not self._errors, f"{left} records not acknowledged; errors: {self._errors[:3]}"
        self._journal.write(self._acknowledged)
        self._acknowledged.clear()

    @contextmanager
    def transaction(self, *, commit: bool = True) -> Iterator[None]:
        """Send what is sent inside in one transaction, and commit or abort it; aborted records are not in the journal."""
        self._producer.begin_transaction()
        yield
        assert self._producer.flush(FLUSH_SECONDS) == 0
        if commit:
            self._producer.commit_transaction(FLUSH_SECONDS)
            self.flush()
        else:
            self._producer.abort_transaction(FLUSH_SECONDS)
            self._acknowledged.clear()


def event(number: int, **changes: Any) -> dict[str, Any]:
    """Return the columns of the event with this number; content and length follow from it."""
    columns = {
        "id": number,
        "body": f"event {number} " + "äöü-" * (number % 23),
        "amount": None if number % 7 == 0 else number / 8,
        "tags": [f"t{number % 5}", "x"][: number % 3],
    }
    return {**columns, **changes}


def as_json(columns: Mapping[str, Any]) -> bytes:
    """Return the record's value."""
    return json.dumps(columns, ensure_ascii=False).encode()


def send_events(producer: JournalingProducer, topic: str, numbers: range, **options: Any) -> None:
    """Send good events, each of which gives one row, and wait for their acknowledgement."""
    for number in numbers:
        columns = event(number)
        producer.send(topic, as_json(columns), rows=[columns], key=str(number).encode(), **options)
    producer.flush()


RowsOf = Callable[[dict[str, Any]], list[dict[str, Any]]]
"""What the pipeline must make of an event."""


def as_one_row(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """Without a transform an event is a row."""
    return [columns]


class Load:
    """A thread that keeps producing events, until it is ended; each so many-th is bad, or none."""

    def __init__(
        self,
        producer: JournalingProducer,
        topic: str,
        per_second: int,
        bad_every: int | None = BAD_EVERY,
        rows_of: RowsOf = as_one_row,
    ) -> None:
        self._bad_every = bad_every
        self._rows_of = rows_of
        self._producer = producer
        self._topic = topic
        self._per_second = per_second
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self.sent = 0

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(FLUSH_SECONDS)
        assert not self._thread.is_alive(), "the load did not end"
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            started = time.monotonic()
            while not self._ended.is_set():
                due = int((time.monotonic() - started) * self._per_second)
                for number in range(self.sent, due):
                    self._send(number)
                self.sent = max(self.sent, due)
                self._ended.wait(_LOAD_SECONDS)
            self._producer.flush()
        except (AssertionError, KafkaException) as exc:
            self._error = exc

    def _send(self, number: int) -> None:
        columns = event(number)
        if self._bad_every and number % self._bad_every == self._bad_every - 1:
            self._producer.send(self._topic, as_json(columns)[:-1], key=str(number).encode())
        else:
            rows = self._rows_of(columns)
            fate: Fate = "table" if rows else "nothing"
            self._producer.send(self._topic, as_json(columns), rows=rows, fate=fate, key=str(number).encode())
