"""The demo says at once that an edited example does not read from the broker that the demo starts."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from lakebound.errors import InvalidSpecError
from lakebound.local import stack
from lakebound.local.demo import PIPELINES, run_demo
from lakebound.local.demo_broker import OtherBrokerError, check_brokers
from lakebound.settings import Settings, load_settings

EXAMPLES = Path(__file__).parents[3] / "include" / "pipelines"
SERVERS = "bootstrap_servers: ${LAKEBOUND_KAFKA}"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Places of a test's own, with the examples as they are."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(EXAMPLES, tmp_path / "pipelines")
    return replace(load_settings({"LAKEBOUND_HOME": str(tmp_path / "home")}), pipelines=tmp_path / "pipelines")


def edit(settings: Settings, pipeline: str, *lines: str) -> int:
    """Write other lines of the connection in place of the broker; return the number of the first."""
    path = settings.pipelines / f"{pipeline}.yaml"
    text = path.read_text()
    at = text.index(SERVERS)
    rest = text[text.index("\n", at) :].replace("\n  tls: false", "", 1)
    path.write_text(text[:at] + "\n  ".join(lines) + rest)
    return text[:at].count("\n") + 1


def test_the_examples_as_they_are_read_from_the_demos_broker(settings: Settings) -> None:
    check_brokers(settings, PIPELINES)
    check_brokers(replace(settings, kafka="kafka.example.com:9092"), PIPELINES)


def test_a_demo_of_edited_examples_names_file_and_field_and_starts_nothing(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack, "up", lambda *_, **__: pytest.fail("services were started"))
    first = edit(settings, "orders", "bootstrap_servers: kafka.example.com:9092")
    second = edit(
        settings, "sensor_readings", SERVERS, "tls: true", "sasl: {mechanism: PLAIN, username: u, password: {file: k}}"
    )
    with pytest.raises(OtherBrokerError) as refused:
        run_demo(settings)
    *lines, last = str(refused.value).splitlines()
    assert [line.partition(", but")[0] for line in lines] == [
        f"pipelines/orders.yaml:{first}: connection.bootstrap_servers: is kafka.example.com:9092",
        f"pipelines/sensor_readings.yaml:{second + 1}: connection.tls: is true",
        f"pipelines/sensor_readings.yaml:{second + 2}: connection.sasl: is given",
    ]
    assert "${LAKEBOUND_KAFKA}" in lines[0] and "lakebound demo --running" in last
    assert not settings.home.exists()


def test_a_wrong_example_is_named_before_anything_starts(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack, "up", lambda *_, **__: pytest.fail("services were started"))
    edit(settings, "orders", "servers: x")
    with pytest.raises(InvalidSpecError, match=r"orders\.yaml:\d+"):
        run_demo(settings)


def test_settings_of_the_clients_do_not_matter(settings: Settings) -> None:
    edit(settings, "orders", "bootstrap_servers: ${LAKEBOUND_KAFKA:-127.0.0.1:9092}", "client: {request.timeout.ms: 20000}")
    check_brokers(settings, PIPELINES)
