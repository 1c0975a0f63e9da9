"""What an Airflow connection says of Spark: the backend, where the driver runs, memory, cores and settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from lakebound.control.submission import BackendName
from lakebound.landing.spark_resources import installation_of
from lakebound.settings import Settings, load_settings
from lakebound.spec.spark import InstallationSpark, SparkSettingsError
from lakebound_airflow.backends import connection
from lakebound_airflow.backends.choice import backend_for
from lakebound_airflow.backends.target import Target, UnknownDeployModeError, target_from_connection


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings({"LAKEBOUND_HOME": str(tmp_path), "LAKEBOUND_SPARK_SETTINGS": '{"max_cores": 4, "driver_cores": 2}'})


def test_the_driver_stays_on_the_worker_where_the_connection_says_so() -> None:
    found = target_from_connection("c", "spark://m", 7077, {"deploy_mode": "client"})
    assert found == Target(BackendName.LOCAL, "spark://m:7077")
    assert target_from_connection("c", "spark://m", 7077, {"deploy_mode": "cluster"}).backend is BackendName.STANDALONE


def test_the_mode_that_airflows_form_fills_in_moves_no_driver() -> None:
    assert target_from_connection("c", "spark://m", 7077, {"deploy-mode": "client"}).backend is BackendName.STANDALONE


def test_another_place_for_the_driver_is_refused() -> None:
    with pytest.raises(UnknownDeployModeError, match="connection 'c', extra deploy_mode: 'remote' is neither 'cluster'"):
        target_from_connection("c", "spark://m", 7077, {"deploy_mode": "remote"})


@pytest.mark.parametrize("host", ["local[2]", "spark://m:7077"])
def test_the_extra_says_what_applications_get(host: str) -> None:
    extra = {
        "driver_memory": "2g",
        "max_cores": "6",
        "executor_memory": "",
        "spark_conf": {"spark.task.cpus": "1"},
        "queue": "q",
    }
    found = target_from_connection("c", host, None, extra).spark
    assert found == InstallationSpark(driver_memory="2g", max_cores=6, conf={"spark.task.cpus": "1"})


def test_a_secret_in_the_extra_is_refused_and_not_repeated() -> None:
    with pytest.raises(
        SparkSettingsError, match=r"connection 'c', extra: conf\.spark\.ssl\.keyPassword: may hold a sec"
    ) as caught:
        target_from_connection("c", "local[2]", None, {"spark_conf": {"spark.ssl.keyPassword": "hunter2"}})
    assert "hunter2" not in str(caught.value)


def test_the_connection_wins_over_the_environment_and_reaches_the_backend(settings: Settings) -> None:
    backend = backend_for(target_from_connection("c", "spark://m", 7077, {"max_cores": 6}), settings)
    assert installation_of(backend._settings) == InstallationSpark(max_cores=6, driver_cores=2)  # type: ignore[attr-defined]


def test_batch_applications_get_what_their_own_connection_says(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def get_connection(conn_id: str) -> Connection:
        if conn_id != "lakebound_maintenance":
            raise AirflowNotFoundException(conn_id)
        return Connection(conn_id=conn_id, conn_type="spark", host="local[1]", extra=json.dumps({"driver_memory": "3g"}))

    monkeypatch.setattr(connection.BaseHook, "get_connection", get_connection)
    installed = connection.with_connection("lakebound_maintenance", settings)
    assert installation_of(installed) == InstallationSpark(max_cores=4, driver_cores=2, driver_memory="3g")
    assert connection.with_connection("lakebound_validation", settings) == settings
