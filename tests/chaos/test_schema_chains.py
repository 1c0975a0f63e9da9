"""Records of many versions of a schema, and hostile bytes, while a stream is killed: each lands once, or is held.

Versions are drawn at random: they add, remove, rename, reorder and widen fields, or change a type so that the tables cannot
follow. Confluent's serialisers write them with a real registry. LAKEBOUND_CHAOS_SEED repeats a run. The short form has Avro in
one application; what a kill leaves in quarantine is landed by ``quarantine --replay`` in the long form.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from tests.support.formats import version_chains
from tests.support.formats.protobuf import message_class
from tests.support.formats.version_chains import Format, Row, Version, changes_of, columns_of, rows_of, value_of
from tests.support.kafka.makers import TopicMaker
from tests.support.registry.server import SchemaRegistry
from tests.support.streams.applications import applications, go_on
from tests.support.streams.command_line import answer, environment_of
from tests.support.streams.long_form import LONG_FORM
from tests.support.streams.pipelines import Lane, Pipeline, make_pipeline

from lakebound.inspection.proof.collect import prove
from lakebound.local.broker import Broker
from lakebound.spec.table import TableSpec

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(3600)]

Place = tuple[int, int]
"""Partition and offset."""
KILLS: tuple[tuple[Lane, str], ...] = (
    ("direct", "kill@after_commit/delta#4,hold@before_commit/iceberg#4"),
    ("cluster", "kill@after_data_files/cluster#2"),
    ("direct", "kill@between_batches#3"),
    ("driver", "kill@batch_begins#2"),
    ("cluster", "kill@after_commit/land#2"),
    ("direct", "kill@after_commit/iceberg#3,hold@before_commit/delta#3"),
)
"""Where applications are killed, one after the other; after each of the last ones in the long form also at any moment."""
VERSIONS, PER_VERSION, RANDOM_IDS = (24, 60, 1_500) if LONG_FORM else (4, 12, 3)
STOPS_ASKING = RANDOM_IDS >= 1_000
"""Whether so many ids are unknown that no further one is asked for during some minutes: newer versions are seen later then."""
_SECONDS_BETWEEN_VERSIONS = 1.5 if LONG_FORM else 0.5


@dataclass(frozen=True)
class Sent:
    """A record that the broker has.

    Attributes:
        version: Which wrote it, by its number in the chain; None: nothing that can be read.
        value: Its fields.
        may_land: Whether it may be in the tables.
        may_be_held: Whether it may be in quarantine.
    """

    version: int | None
    value: Row
    may_land: bool
    may_be_held: bool


@dataclass
class Sender:
    """Sends records of all versions up to the newest, as producers with Confluent's serialisers do."""

    form: Format
    registry: SchemaRegistry
    producer: Producer
    topic: str
    versions: Sequence[Version]
    draw: random.Random
    sent: dict[Place, Sent] = field(default_factory=dict)
    _numbers: int = 0
    _serialisers: dict[tuple[int, str], Callable[[Row], bytes]] = field(default_factory=dict)

    def write(self, version: int, value: Row, topic: str | None = None) -> bytes:
        """Return a value's bytes; the first of a version registers its schema."""
        which = version, topic or self.topic
        if which not in self._serialisers:
            self._serialisers[which] = self._serialiser(self.versions[version], which[1])
        return self._serialisers[which](value)

    def send(self, content: bytes, sent: Sent) -> None:
        """Send a record, into the partitions in turn."""

        def delivered(error: Any, message: Any) -> None:
            assert error is None, error
            self.sent[message.partition(), message.offset()] = sent

        self._numbers += 1
        self.producer.produce(self.topic, content, partition=self._numbers % 2, on_delivery=delivered)
        self.producer.poll(0)

    def send_mixed(self, newest: int, records: int) -> None:
        """Send records of versions up to the newest one, and hostile bytes among them."""
        for number in range(records):
            version = newest if number % 3 == 0 else self.draw.randrange(newest + 1)
            one = self.versions[version]
            value = value_of(self.draw, one, self._numbers)
            content = self.write(version, value)
            fits_anyway = one.change == "union" and 7 not in [
                value[field.name] for field in one.fields if field.kind == "either"
            ]
            as_column = version_chains.proto_row(one, value) if self.form == "protobuf" else value
            self.send(content, Sent(version, as_column, one.fits or fits_anyway, not one.fits))
            if number % 10 == 0:
                self.send_hostile(content)
        self.flush()

    def send_hostile(self, good: bytes) -> None:
        """Send bytes that are no record of a version."""
        spoilt = {
            "avro": [good[:-1], good + b"\0", good[:5] + b"\xff" * 9 + b"\x01"],
            "json_schema": [good[:-1], good[:5] + b"[1]"],
        }
        hostile = [b"", b"{}", b"\0\0\0", b"\x01" + good[1:], *spoilt.get(self.form, [good + b"\xff" * 11])]
        self.send(self.draw.choice(hostile), Sent(None, {}, may_land=False, may_be_held=True))

    def send_random_ids(self, number: int) -> None:
        """Send records that name schemas which nobody has."""
        for _ in range(number):
            content = b"\0" + self.draw.randrange(10**6, 2**31).to_bytes(4, "big") + self.draw.randbytes(9)
            self.send(content, Sent(None, {}, may_land=False, may_be_held=True))
        self.flush()

    def flush(self) -> None:
        """Wait until the broker has all."""
        assert self.producer.flush(60) == 0

    def ends(self) -> dict[str, dict[int, int]]:
        """Return the offset behind the last record, by topic and partition."""
        return {self.topic: {at: 1 + max(offset for partition, offset in self.sent if partition == at) for at in (0, 1)}}

    def _serialiser(self, version: Version, topic: str) -> Callable[[Row], bytes]:
        client, context = self.registry.client(), SerializationContext(topic, MessageField.VALUE)
        serialise: Any
        if self.form == "avro":
            serialise = AvroSerializer(client, version_chains.avro_text(version))
            return lambda value: serialise(value, context)
        if self.form == "json_schema":
            serialise = JSONSerializer(version_chains.json_text(version), client, conf={"validate": False})
            return lambda value: serialise(value, context)
        kind = message_class(version_chains.proto_text(version), "shop.Order")
        serialise = ProtobufSerializer(kind, client, {"use.deprecated.format": False})
        return lambda value: serialise(kind(**version_chains.proto_value(version, value)), context)


class Sending(threading.Thread):
    """Sends one version after the other, then records of all of them until it is ended."""

    def __init__(self, sender: Sender, last: int) -> None:
        super().__init__(name="sender", daemon=True)
        self._sender, self._last = sender, last
        self._ended, self.all_sent = threading.Event(), threading.Event()
        self._error: BaseException | None = None

    def end(self) -> None:
        """Return when it has ended."""
        self._ended.set()
        self.join(120)
        assert not self.is_alive()
        if self._error is not None:
            raise self._error

    def run(self) -> None:
        try:
            self._sender.send_random_ids(RANDOM_IDS)
            newest = 0
            while not self._ended.is_set():
                newest = min(newest + 1, self._last)
                self._sender.send_mixed(newest, PER_VERSION)
                if newest == self._last:
                    self.all_sent.set()
                self._ended.wait(_SECONDS_BETWEEN_VERSIONS)
        except BaseException as exc:
            self._error = exc
            self.all_sent.set()


@pytest.mark.parametrize("form", ["avro", "protobuf", "json_schema"] if LONG_FORM else ["avro"])
def test_records_of_all_versions_land_once_or_are_held(
    form: Format, broker: Broker, topic: TopicMaker, schema_registry: SchemaRegistry, tmp_path: Path
) -> None:
    seed = int(os.environ.get("LAKEBOUND_CHAOS_SEED", time.time_ns() % 1_000_000))
    print(f"LAKEBOUND_CHAOS_SEED={seed}")
    draw, name = random.Random(seed), topic("chains", partitions=2)
    versions = version_chains.chain(draw, form, changes_of(draw, form, VERSIONS))
    # The last version is registered for another topic alone, until the end.
    foreign = Version(
        (*[one for one in versions if one.fits][-1].fields, version_chains.Field("foreign", "long", 999)), "foreign"
    )
    versions.append(foreign)
    last = len(versions) - 2
    schema_registry.ask("PUT", f"config/{name}-value", {"compatibility": "NONE"})
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True, "linger.ms": 5})
    sender = Sender(form, schema_registry, producer, name, versions, random.Random(seed))
    pipeline = registered_pipeline(tmp_path, broker, name, schema_registry.url, form)
    sender.send_mixed(0, 20)
    with applications() as starter, environment_of(pipeline.settings, pipeline.settings.pipelines):
        running = starter.start(pipeline.with_lane("direct"))
        running.wait_landed(sender.ends())
        if LONG_FORM:
            assert running.stop().verdict == "stopped"
        sending = Sending(sender, last)
        sending.start()
        try:
            if LONG_FORM:
                for lane, rules in KILLS:
                    starter.start(pipeline.with_lane(lane), faults=rules).wait_killed(f"at {rules}")
                    hurried = starter.start(pipeline.with_lane(lane), own_jvm=True)
                    time.sleep(draw.uniform(4, 16))  # Not a wait for luck: the moment of the kill is what is random here.
                    hurried.kill()
                    go_on(pipeline)
                running = starter.start(pipeline)
            running.wait_for(sending.all_sent.is_set, 240, "all versions are sent")
        finally:
            sending.end()
        for _ in range(10):
            value = value_of(draw, foreign, 10**9)
            content = sender.write(last + 1, value, topic=f"{name}-other")
            as_column = version_chains.proto_row(foreign, value) if form == "protobuf" else value
            sender.send(content, Sent(last + 1, as_column, may_land=False, may_be_held=True))
        sender.flush()
        running.wait_landed(sender.ends(), 240)
        held = judge(form, pipeline, sender, versions[:-1])
        assert held["schema_does_not_fit"] >= 10 and held["no_schema_id"], held

        if LONG_FORM:
            # Now the topic has this version, too. A replay alters no table: first the stream, which looks twice a minute.
            sender.send_mixed(last + 1, 1)
            running.wait_landed(sender.ends())
            running.wait_for(
                lambda: all(has_column(pipeline, one, "foreign") for one in pipeline.spec.tables), 240, "the column is there"
            )
            # What was held lands, and nothing twice.
            done = answer("quarantine", "events", "--replay")["result"]
            assert done["state"] == "completed", done
            assert not any("foreign" in told for told in done["left_out"].values()), done
        assert running.stop().verdict == "stopped"
    if LONG_FORM:
        # Those that came before the stream saw the new version are held, too.
        landable = {place: one for place, one in sender.sent.items() if one.version == last + 1}
        sender.sent |= {place: replace(one, may_land=True, may_be_held=True) for place, one in landable.items()}
        judge(form, pipeline, sender, versions, is_replayed=True)
    proof = prove(pipeline.spec, pipeline.places, deep=True)
    problems = [f"{table.table}: {problem}" for table in proof.tables for problem in table.problems]
    assert proof.ok and (proof.missing, proof.duplicated) == (0, 0), problems


def registered_pipeline(folder: Path, broker: Broker, topic: str, url: str, form: Format) -> Pipeline:
    """Return the pipeline, whose YAML and registry stand in a folder."""
    pipelines = folder / "include" / "pipelines"
    pipelines.mkdir(parents=True)
    (pipelines.parent / "registries.yaml").write_text(yaml.safe_dump({"registries": {"shop": {"url": url}}}))
    value = {"format": form, "registry": "shop"}
    made = make_pipeline(folder, broker.bootstrap_servers, topic, freshness="200ms", value=value)
    body = made.spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    (pipelines / "events.yaml").write_text(yaml.safe_dump(body))
    return replace(made, settings=replace(made.settings, pipelines=pipelines))


def has_column(pipeline: Pipeline, table: TableSpec, name: str) -> bool:
    """Return whether a table has a column."""
    return name in pipeline.read(table).column_names


def judge(
    form: Format, pipeline: Pipeline, sender: Sender, versions: Sequence[Version], *, is_replayed: bool = False
) -> dict[str, int]:
    """Check that each record is where it may be, once and as it was sent; return how many are held, by reason.

    Args:
        form: Of the values.
        pipeline: Whose tables are read.
        sender: Knows what was sent.
        versions: That the topic has.
        is_replayed: Whether what was held has been landed where it can be: it is in quarantine, too.
    """
    columns = columns_of([one for one in versions if one.fits])
    reasons, held, excused = defaultdict[str, int](int), set[Place](), set[Place]()
    for row in pipeline.read(pipeline.spec.quarantine_table).to_pylist():
        place = row["_kafka"]["partition"], row["_kafka"]["offset"]
        assert place not in held, f"{place} is held twice"
        if STOPS_ASKING and row["reason"] == "unknown_schema":
            excused.add(place)
        told = f"{place} is held: {row['reason']}, {row['error']}; it is {sender.sent[place]}"
        assert sender.sent[place].may_be_held or place in excused, told
        held.add(place)
        reasons[row["reason"]] += 1
    for table in pipeline.spec.tables:
        found = defaultdict[Place, list[Row]](list)
        for row in pipeline.read(table).to_pylist():
            kafka = row.pop("_kafka")
            found[kafka["partition"], kafka["offset"]].append(row)
        assert set(found) <= set(sender.sent)
        for place, one in sender.sent.items():
            what = f"{table.id}, {place}: {one}"
            if place not in found:
                assert place in held and not (is_replayed and one.may_land), f"{what} is lost"
                continue
            assert len(found[place]) == 1 and one.version is not None and one.may_land, f"{what} has rows {found[place]}"
            # One that is read or not as versions come and go may be in one table and held for the other, after a kill between
            # their commits; the replay lands it in the other, too.
            assert is_replayed or one.may_be_held or place in excused or place not in held, f"{what} is held, too"
            readers = [each for each in versions[one.version :] if each.fits]
            allowed = rows_of(form, one.value, versions[one.version], readers, columns)
            assert found[place][0] in allowed, f"{what}\n  has {found[place][0]}\nnot one of {allowed}"
    return dict(reasons)
