"""What the embedded services are told: command lines and configuration files, without starting them."""

from __future__ import annotations

import configparser
import os
import socket
from pathlib import Path

import pytest
from airflow.sdk.module_loading import import_string

from lakebound.control.ports import FIRST_PORT, LAST_PORT, free_port, is_free, is_open
from lakebound.local.airflow import Airflow, _is_alive_since
from lakebound.local.airflow_config import (
    AirflowPorts,
    AirflowSecrets,
    airflow_cfg,
    busy_timeout_seconds,
    new_secrets,
    read_secrets,
)
from lakebound.local.broker import broker_command, format_command
from lakebound.local.broker_config import BrokerPorts, SaslUser, server_properties
from lakebound.settings import load_settings, self_approval_is_allowed

PORTS = BrokerPorts(plaintext=9092, controller=9093, sasl=9094)
USER = SaslUser("lake", "do not tell")
KEYS = AirflowSecrets(fernet_key="f%1", jwt_secret="j", api_secret="a")


def properties(sasl: SaslUser | None) -> dict[str, str]:
    lines = server_properties(Path("/data"), PORTS, sasl).splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_the_broker_listens_on_loopback_only() -> None:
    listeners = properties(None)["listeners"]

    assert listeners == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"


def test_the_broker_makes_no_topic_unasked() -> None:
    assert properties(None)["auto.create.topics.enable"] == "false"


def test_with_a_user_there_is_a_second_listener() -> None:
    found = properties(USER)

    assert found["advertised.listeners"] == "PLAINTEXT://127.0.0.1:9092,SASL_PLAINTEXT://127.0.0.1:9094"
    assert 'user_lake="do not tell";' in found["listener.name.sasl_plaintext.plain.sasl.jaas.config"]
    assert not any("sasl" in name for name in properties(None))


def test_a_password_shows_in_no_representation() -> None:
    assert USER.password not in repr(USER)
    assert KEYS.fernet_key not in repr(KEYS)


def test_the_broker_s_command_lines_name_class_heap_and_configuration() -> None:
    run = broker_command(Path("/jars"), Path("/b"), heap_megabytes=512)
    prepare = format_command(Path("/jars"), Path("/b"))

    assert "-Xmx512m" in run
    assert run[-2:] == ["kafka.Kafka", "/b/server.properties"]
    assert prepare[prepare.index("kafka.tools.StorageTool") + 1] == "format"
    assert run[run.index("-cp") + 1] == prepare[prepare.index("-cp") + 1] == "/jars/broker/*"


def configuration() -> configparser.ConfigParser:
    text = airflow_cfg(Path("/h"), Path("/r/dags"), Path("/r/plugins"), AirflowPorts(8080, 8793, 8794), KEYS)
    parser = configparser.ConfigParser()
    parser.read_string(text)
    return parser


def test_airflow_runs_on_loopback_with_one_api_worker_and_no_examples() -> None:
    found = configuration()

    assert found["api"]["host"] == "127.0.0.1"
    assert found["api"]["base_url"] == "http://127.0.0.1:8080"
    assert found["core"]["execution_api_server_url"] == "http://127.0.0.1:8080/execution/"
    assert found["api"]["workers"] == "1"
    assert found["core"]["load_examples"] == "False"
    assert found["database"]["sql_alchemy_conn"] == "sqlite:////h/airflow.db"


def test_a_cleared_task_runs_again() -> None:
    assert configuration()["state_store"]["clear_on_success"] == "True"


def test_airflow_s_keys_outlive_a_restart() -> None:
    text = airflow_cfg(Path("/h"), Path("/d"), Path("/p"), AirflowPorts(1, 2, 3), new_secrets())

    keys = read_secrets(text)
    assert keys is not None
    assert airflow_cfg(Path("/h"), Path("/d"), Path("/p"), AirflowPorts(1, 2, 3), keys) == text
    assert new_secrets() != new_secrets()
    assert read_secrets("[core]\n") is None
    assert read_secrets("not a configuration") is None


def test_airflow_s_own_variables_are_not_inherited_but_connections_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "sqlite:////somewhere/else.db")
    monkeypatch.setenv("AIRFLOW_CONN_ALERTS", "http://127.0.0.1:1/")
    settings = load_settings({"LAKEBOUND_HOME": str(tmp_path), "LAKEBOUND_KAFKA": "127.0.0.1:5"})

    found = Airflow(settings, environment={"AIRFLOW_CONN_MORE": "x"}).environment()

    assert "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN" not in found
    assert found["AIRFLOW_CONN_ALERTS"] == "http://127.0.0.1:1/"
    assert found["AIRFLOW_CONN_MORE"] == "x"
    assert found["LAKEBOUND_KAFKA"] == "127.0.0.1:5"
    assert found["AIRFLOW_HOME"] == str(tmp_path / "airflow")
    assert found["PATH"].split(os.pathsep)[0].endswith("bin")


def test_the_embedded_airflow_is_for_a_team_of_one_unless_the_shell_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    airflow = Airflow(load_settings({"LAKEBOUND_HOME": str(tmp_path)}))
    monkeypatch.delenv("LAKEBOUND_SELF_APPROVAL", raising=False)
    assert self_approval_is_allowed(airflow.environment())
    monkeypatch.setenv("LAKEBOUND_SELF_APPROVAL", "refuse")
    assert not self_approval_is_allowed(airflow.environment())


@pytest.mark.parametrize(
    ("component", "alive"),
    [
        ({"status": "healthy"}, True),
        ({"status": "healthy", "latest_scheduler_heartbeat": "2026-11-20T14:00:11+00:00"}, True),
        ({"status": "healthy", "latest_scheduler_heartbeat": "2026-11-20T14:00:09+00:00"}, False),
        ({"status": "unhealthy", "latest_scheduler_heartbeat": "2026-11-20T14:00:11+00:00"}, False),
        ({"status": None}, False),
        (None, False),
    ],
)
def test_a_sign_of_life_from_before_the_start_does_not_count(component: dict[str, str | None] | None, alive: bool) -> None:
    started = 1_795_183_210.0  # 2026-11-20T14:00:10Z

    assert _is_alive_since(started, component) is alive


def test_a_free_port_is_free_and_outside_the_range_of_outgoing_connections() -> None:
    port = free_port()

    assert FIRST_PORT <= port <= LAST_PORT
    assert is_free(port)
    assert not is_open(port)


def test_a_taken_port_is_passed_over() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        assert not is_free(port)
        assert is_open(port)
        assert free_port(preferred=port) != port


def test_the_preferred_port_is_taken_when_it_is_free() -> None:
    port = free_port()

    assert free_port(preferred=port) == port


@pytest.mark.parametrize("key", ["sql_alchemy_connect_args", "sql_alchemy_connect_args_async"])
def test_airflows_processes_wait_long_for_each_other(key: str) -> None:
    assert import_string(configuration()["database"][key])["timeout"] >= 60


def test_the_api_server_which_may_wait_for_itself_waits_a_short_time_for_the_database() -> None:
    assert busy_timeout_seconds(["airflow", "api-server"]) == 1.0
    assert busy_timeout_seconds(["airflow", "scheduler"]) == busy_timeout_seconds(["lakebound", "up"]) == 60.0
