"""Whether the example pipelines read from the broker that the demo starts: an edited one would be waited for in vain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from lakebound.errors import LakeboundError
from lakebound.settings import Settings
from lakebound.spec.connection import ConnectionSpec
from lakebound.spec.load import load_pipeline, path_of
from lakebound.spec.problem_lines import problem_line
from lakebound.spec.yaml_source import Mistake, read_yaml

# Stands for the demo's broker before it has an address; nobody writes it into a file.
_OWN_BROKER = "127.0.0.1:1"
_REST = "To land from that broker, start an Airflow (`lakebound up`) and use `lakebound demo --running`"


class OtherBrokerError(LakeboundError):
    """An example pipeline does not read from the demo's own broker."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join([*problems, _REST]))


def check_brokers(settings: Settings, pipelines: Iterable[str]) -> None:
    """Check that pipelines read from the broker that the demo is about to start.

    Args:
        settings: This machine's.
        pipelines: Those that the demo lands.

    Raises:
        InvalidSpecError: The YAML of one is wrong.
        OtherBrokerError: One names another broker, or a way to reach it that the demo's broker does not have.
        UnknownPipelineError: No file declares one.
    """
    own = replace(settings, kafka=_OWN_BROKER)
    problems = []
    for name in pipelines:
        connection = load_pipeline(name, own).connection
        path = path_of(name, own)
        source = read_yaml(path)
        for field, what in differences(connection):
            keys = ("connection", field)
            problems.append(problem_line(path, Mistake(source.line_of(keys), what, keys)))
    if problems:
        raise OtherBrokerError(problems)


def differences(connection: ConnectionSpec) -> Iterator[tuple[str, str]]:
    """Return each field by which a connection does not reach the demo's own broker, and why. Pure."""
    if connection.bootstrap_servers != _OWN_BROKER:
        what = f"is {connection.bootstrap_servers}, but the demo starts a broker of its own; write ${{LAKEBOUND_KAFKA}}"
        yield "bootstrap_servers", what
    if connection.tls:
        yield "tls", "is true, but the demo's own broker has no TLS; write false"
    if connection.sasl:
        yield "sasl", "is given, but the demo's own broker has no login; remove it"
