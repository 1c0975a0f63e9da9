"""``lakebound create-topic``: topics on the broker of a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lakebound.cli.output import Json, print_json, show

if TYPE_CHECKING:
    from lakebound.settings import Settings
    from lakebound.spec.pipeline import PipelineSpec

Topic = Annotated[str | None, typer.Argument(help="Topic name. Default: all topics of --pipeline.")]
Pipeline = Annotated[
    str | None,
    typer.Option(
        help="Use the connection of this pipeline. Default: the pipeline that reads the topic, or else LAKEBOUND_KAFKA."
    ),
]
Partitions = Annotated[
    int | None, typer.Option(min=1, help="Number of partitions of a new topic. Default: the broker's default.")
]
Replication = Annotated[
    int | None, typer.Option(min=1, help="Replication factor of a new topic. Default: the broker's default.")
]


def create_topic(
    topic: Topic = None,
    pipeline: Pipeline = None,
    partitions: Partitions = None,
    replication: Replication = None,
    json: Json = False,
) -> None:
    """Create a topic, or all missing topics of a pipeline. Existing topics are not changed."""
    from dataclasses import asdict

    from lakebound.landing.topic_creation import create_topics
    from lakebound.settings import load_settings
    from lakebound.spec.connection import ConnectionSpec

    settings = load_settings()
    if topic is None and pipeline is None:
        raise typer.BadParameter("name a topic, or a pipeline with --pipeline", param_hint="TOPIC")
    spec = _pipeline(topic, pipeline, settings)
    wanted = [topic] if topic is not None else list(spec.topics if spec is not None else ())
    connection = spec.connection if spec is not None else ConnectionSpec(bootstrap_servers=settings.kafka)
    made = create_topics(connection, wanted, partitions=partitions, replication=replication)
    if json:
        print_json([asdict(one) for one in made])
        return
    for one in made:
        counted = f"{one.partitions} partition{'s' if one.partitions > 1 else ''}"
        show(f"{one.topic}: {'created' if one.is_new else 'exists already, nothing was changed'}; {counted}")


def _pipeline(topic: str | None, pipeline: str | None, settings: Settings) -> PipelineSpec | None:
    """Return the pipeline whose connection counts; None where no pipeline reads the topic."""
    from lakebound.spec.load import load_pipeline, load_pipelines

    if pipeline is not None:
        return load_pipeline(pipeline, settings)
    readers = (spec for spec in load_pipelines(settings).specs.values() if topic in spec.topics)
    return next(readers, None)
