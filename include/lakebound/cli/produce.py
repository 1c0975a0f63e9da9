"""``lakebound produce``: demo data, good and bad."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakebound.cli.options import with_options
from lakebound.cli.output import Json, print_json, say, show

if TYPE_CHECKING:
    from lakebound.local.produce import Feed

Datasets = Annotated[list[str] | None, typer.Argument(help="orders or sensor_readings. Default: both.", metavar="[DATASET]...")]
Rate = Annotated[float, typer.Option(min=0, help="Records per second to each topic. 0: as fast as Kafka accepts them.")]
Seconds = Annotated[float, typer.Option(min=0, help="How long to send.")]
Count = Annotated[int | None, typer.Option(min=1, help="Maximum number of records per topic.")]
Topic = Annotated[str, typer.Option(help="Send to this topic instead of the dataset's own. Needs exactly one dataset.")]
BadShare = Annotated[float, typer.Option(min=0, max=1, help="Share of bad records, 0 to 1.")]
BadKinds = Annotated[
    list[str] | None,
    typer.Option("--bad-kind", help="Kind of bad records. Can be repeated. Default: all, also those that can be read."),
]
EachBad = Annotated[bool, typer.Option("--each-bad", help="First send one bad record of each kind.")]
Journal = Annotated[Path | None, typer.Option(help="Append each acknowledged record to this CSV file.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same records.")]
Pipeline = Annotated[str | None, typer.Option(help="Use the connection of this pipeline. Its user needs the right to write.")]
Kafka = Annotated[str | None, typer.Option("--kafka", help="Bootstrap servers. Default: LAKEBOUND_KAFKA.")]


Avro = Annotated[
    str | None,
    typer.Option(
        "--avro-registry", help="Send good records in Avro, with this registry of registries.yaml; see --avro-schema."
    ),
]
AvroSchema = Annotated[
    Path | None,
    typer.Option("--avro-schema", help="File with the Avro schema, which is registered as TOPIC-value. Needs one dataset."),
]


@dataclass(frozen=True)
class ProduceOptions:
    """What the command takes."""

    datasets: Datasets = None
    rate: Rate = 100.0
    seconds: Seconds = 60.0
    count: Count = None
    topic: Topic = ""
    bad_share: BadShare = 0.0
    bad_kinds: BadKinds = None
    each_bad: EachBad = False
    journal: Journal = None
    seed: Seed = 1
    kafka: Kafka = None
    pipeline: Pipeline = None
    avro_registry: Avro = None
    avro_schema: AvroSchema = None
    json: Json = False


def send_records(options: ProduceOptions) -> None:
    """Send demo records to Kafka for a limited time. Options add bad records. Ctrl-C ends it early."""
    import threading

    from lakebound.cli.signals import on_stop_signals
    from lakebound.local.produce import produce as send
    from lakebound.local.sample_records import READABLE_KINDS

    if options.kafka and options.pipeline:
        raise typer.BadParameter("give either --kafka or --pipeline", param_hint="--pipeline")
    feeds = _feeds(options)
    config = _kafka(options.kafka, options.pipeline, feeds)
    stop = threading.Event()
    with on_stop_signals(lambda _: stop.set()):
        produced = send(config, feeds, options.seconds, journal=options.journal, seed=options.seed, stop=stop, say=say)
    if options.json:
        print_json({**asdict(produced), "total": produced.total})
        return
    for name, records in sorted(produced.acknowledged.items()):
        show(f"{name}: {records:,} records acknowledged")
    for told, is_readable in (("bad", False), ("unusual but readable", True)):
        kinds = [kind for kind in sorted(produced.bad) if (kind in READABLE_KINDS) is is_readable]
        if kinds:
            show(f"{told}: " + ", ".join(f"{kind} {produced.bad[kind]}" for kind in kinds))


produce = with_options(send_records, ProduceOptions)


def _feeds(options: ProduceOptions) -> list[Feed]:
    from lakebound.local.produce import Feed
    from lakebound.local.sample_records import DATASETS, BadKind

    names = _known(options.datasets or list(DATASETS), list(DATASETS), "DATASET")
    chosen = _known(options.bad_kinds or [kind.value for kind in BadKind], [kind.value for kind in BadKind], "--bad-kind")
    for given, option in ((options.topic, "--topic"), (options.avro_registry, "--avro-registry")):
        if given and len(names) != 1:
            raise typer.BadParameter("needs exactly one dataset", param_hint=option)
    bad = tuple(BadKind(kind) for kind in chosen)
    feeds = [
        Feed(name, options.rate, options.topic, options.count, options.bad_share, bad, bad if options.each_bad else ())
        for name in names
    ]
    return feeds if options.avro_registry is None and options.avro_schema is None else [_in_avro(feeds[0], options)]


def _in_avro(feed: Feed, options: ProduceOptions) -> Feed:
    from lakebound.local.avro_records import avro_encoder
    from lakebound.settings import load_settings
    from lakebound.spec.registries_file import find_registry

    name, file = options.avro_registry, options.avro_schema
    if name is None or file is None:
        raise typer.BadParameter("give both --avro-registry and --avro-schema", param_hint="--avro-registry")
    if not file.is_file():
        raise typer.BadParameter(f"{file}: this file does not exist", param_hint="--avro-schema")
    return replace(feed, encode=avro_encoder(name, find_registry(name, load_settings()), file.read_text(), feed.target))


def _known(given: list[str], known: list[str], where: str) -> list[str]:
    for name in given:
        if name not in known:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(known)}", param_hint=where)
    return given


def _kafka(servers: str | None, pipeline: str | None, feeds: list[Feed]) -> dict[str, str]:
    """Return the client's settings, after the broker has answered: a producer would wait two minutes for it."""
    from lakebound.landing.kafka import KafkaFacts
    from lakebound.landing.kafka_settings import client_config
    from lakebound.settings import load_settings
    from lakebound.spec.connection import ConnectionSpec
    from lakebound.spec.load import load_pipeline

    settings = load_settings()
    connection = ConnectionSpec(bootstrap_servers=servers or settings.kafka)
    if pipeline is not None:
        connection = load_pipeline(pipeline, settings).connection
    KafkaFacts(connection, timeout_seconds=5).topic_ids([feed.target for feed in feeds])
    return client_config(connection)
