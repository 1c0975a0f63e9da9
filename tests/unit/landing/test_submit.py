from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import pytest

from lakebound.control.desired import Desired
from lakebound.control.submission import app_id_for
from lakebound.errors import SettingError
from lakebound.landing.run_spec import RunSpec, make_run_spec
from lakebound.landing.spark_command import spark_environment, spark_submit_command, stream_environment
from lakebound.settings import Settings, load_settings
from lakebound.spec.pipeline import PipelineSpec


def spec() -> PipelineSpec:
    return PipelineSpec.model_validate(
        {
            "pipeline": "orders",
            "topics": ["orders"],
            "connection": {
                "bootstrap_servers": "127.0.0.1:9092",
                "sasl": {"username": "app", "password": {"env": "LAKEBOUND_SECRET_ORDERS"}},
            },
            "value": {"format": "json", "schema": "id BIGINT NOT NULL"},
            "freshness": "500ms",
            "tables": [{"format": "delta", "name": "lake.orders"}],
            "limits": {"stop_timeout_seconds": 45},
        }
    )


def settings(tmp_path: Path, master: str = "local[2]") -> Settings:
    return load_settings({"LAKEBOUND_HOME": str(tmp_path), "LAKEBOUND_JARS": str(tmp_path), "LAKEBOUND_SPARK_MASTER": master})


def confs(command: list[str]) -> dict[str, str]:
    return dict(value.split("=", 1) for flag, value in itertools.pairwise(command) if flag == "--conf")


def run_spec(tmp_path: Path) -> RunSpec:
    return make_run_spec(spec(), settings(tmp_path), Desired(), "orders-g0-abc")


def test_the_command_starts_the_application_with_its_orders_as_the_only_argument(tmp_path: Path) -> None:
    orders = run_spec(tmp_path)
    command = spark_submit_command(orders, settings(tmp_path), ui_port=4242)
    assert command[0] == str(Path(sys.executable).parent / "spark-submit")
    assert command[command.index("--master") + 1] == "local[2]"
    assert command[-3].endswith("/ingest_stream.py")
    assert command[-2] == "--run-spec"
    assert RunSpec.model_validate_json(command[-1]) == orders
    assert confs(command)["spark.ui.port"] == "4242"
    assert confs(command)["spark.sql.streaming.stopTimeout"] == "45000"


def test_time_zones_are_utc_for_jvm_sql_and_python(tmp_path: Path) -> None:
    conf = confs(spark_submit_command(run_spec(tmp_path), settings(tmp_path)))
    assert "-Duser.timezone=UTC" in conf["spark.driver.extraJavaOptions"]
    assert conf["spark.sql.session.timeZone"] == "UTC"
    assert spark_environment(settings(tmp_path), {})["TZ"] == "UTC"


def test_a_local_master_takes_jars_from_the_class_path_and_a_cluster_ships_them(tmp_path: Path) -> None:
    (tmp_path / "spark").mkdir()
    (tmp_path / "spark" / "a.jar").touch()
    local = confs(spark_submit_command(run_spec(tmp_path), settings(tmp_path)))
    assert local["spark.driver.extraClassPath"] == f"{tmp_path}/spark/*"
    assert "spark.jars" not in local
    cluster = confs(spark_submit_command(run_spec(tmp_path), settings(tmp_path, "spark://m:7077")))
    assert cluster["spark.jars"] == f"{tmp_path}/spark/a.jar"
    assert "spark.driver.host" not in cluster


def test_the_log_configuration_is_there(tmp_path: Path) -> None:
    options = confs(spark_submit_command(run_spec(tmp_path), settings(tmp_path)))["spark.driver.extraJavaOptions"].split()
    file = next(option for option in options if "log4j2" in option).partition("=file:")[2]
    assert "rootLogger.level" in Path(file).read_text()


@pytest.mark.parametrize("process", ["driver", "executor"])
def test_the_jvm_does_not_stop_to_collect_classes_at_its_start(tmp_path: Path, process: str) -> None:
    conf = confs(spark_submit_command(run_spec(tmp_path), settings(tmp_path, "spark://m:7077")))
    assert "-XX:MetaspaceSize=256m" in conf[f"spark.{process}.extraJavaOptions"].split()


@pytest.mark.parametrize("process", ["driver", "executor"])
def test_a_token_server_leads_java_to_no_other_server(tmp_path: Path, process: str) -> None:
    conf = confs(spark_submit_command(run_spec(tmp_path), settings(tmp_path, "spark://m:7077")))
    assert "-Dhttp.maxRedirects=0" in conf[f"spark.{process}.extraJavaOptions"].split()


def test_further_jvm_options_follow_the_applications_own(tmp_path: Path) -> None:
    environ = {"LAKEBOUND_HOME": str(tmp_path), "LAKEBOUND_JVM_OPTIONS": "-XX:TieredStopAtLevel=1 -Dx=y"}
    wanted = load_settings(environ)
    options = confs(spark_submit_command(run_spec(tmp_path), wanted))["spark.driver.extraJavaOptions"].split()
    assert options[-2:] == ["-XX:TieredStopAtLevel=1", "-Dx=y"]
    assert load_settings(wanted.environment()) == wanted


def test_the_launchers_jvm_compiles_once_unless_somebody_says_otherwise(tmp_path: Path) -> None:
    assert "-XX:TieredStopAtLevel=1" in spark_environment(settings(tmp_path), {})["SPARK_LAUNCHER_OPTS"]
    assert spark_environment(settings(tmp_path), {"SPARK_LAUNCHER_OPTS": "-Dx=y"})["SPARK_LAUNCHER_OPTS"] == "-Dx=y"


def test_the_password_reaches_the_application_by_its_environment_alone(tmp_path: Path) -> None:
    environ = {"LAKEBOUND_SECRET_ORDERS": "s3cret", "LAKEBOUND_SECRET_OTHERS": "other", "PATH": "/bin"}
    spec = run_spec(tmp_path).spec
    environment = spark_environment(settings(tmp_path), environ, secrets=spec.connection.secret_variables)
    assert environment["LAKEBOUND_SECRET_ORDERS"] == "s3cret"
    assert environment["PATH"] == "/bin"
    assert "LAKEBOUND_SECRET_OTHERS" not in environment
    assert "s3cret" not in json.dumps(spark_submit_command(run_spec(tmp_path), settings(tmp_path)))


@pytest.mark.parametrize(
    ("master", "wanted", "is_on"),
    [
        ("local[2]", "", "true"),
        ("local[2]", "off", "false"),
        ("spark://master:7077", "", "false"),
        ("spark://master:7077", "on", "true"),
    ],
)
def test_the_spark_ui_is_on_one_machine_only_and_kills_nothing(tmp_path: Path, master: str, wanted: str, is_on: str) -> None:
    environ = {"LAKEBOUND_HOME": str(tmp_path), "LAKEBOUND_SPARK_MASTER": master, "LAKEBOUND_SPARK_UI": wanted}
    chosen = load_settings(environ)
    conf = confs(spark_submit_command(run_spec(tmp_path), chosen))
    assert (conf["spark.ui.enabled"], conf["spark.ui.killEnabled"]) == (is_on, "false")
    assert spark_environment(chosen, {}).get("SPARK_LOCAL_IP") == ("127.0.0.1" if master.startswith("local") else None)


def test_a_setting_that_means_nothing_is_refused() -> None:
    with pytest.raises(SettingError, match=r"LAKEBOUND_SPARK_UI: 'yes' is neither 'on' nor 'off'"):
        load_settings({"LAKEBOUND_SPARK_UI": "yes"})


def test_only_named_variables_reach_transforms(tmp_path: Path) -> None:
    environ = {"RATES_URL": "x", "LAKEBOUND_VARIABLES": "RATES_URL", "AWS_SECRET_ACCESS_KEY": "k", "LC_ALL": "C"}
    airflow = {"AIRFLOW__CORE__FERNET_KEY": "key", "AIRFLOW_CONN_X": "uri", "_AIRFLOW_PROCESS_CONTEXT": "server"}
    environment = spark_environment(settings(tmp_path), environ | airflow, secrets=["AIRFLOW_CONN_X"])
    assert {name for name in environ | airflow if name in environment} == {"RATES_URL", "LAKEBOUND_VARIABLES", "LC_ALL"}


def test_openlineages_key_reaches_the_stream_alone_and_by_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"OPENLINEAGE_URL": "https://marquez", "OPENLINEAGE_API_KEY": "s3cret"}.items():
        monkeypatch.setenv(name, value)
    orders, chosen = run_spec(tmp_path), settings(tmp_path)
    environment = stream_environment(orders, chosen)
    assert (environment["OPENLINEAGE_URL"], environment["OPENLINEAGE_API_KEY"]) == ("https://marquez", "s3cret")
    assert not any(name.startswith("OPENLINEAGE") for name in spark_environment(chosen))
    assert "s3cret" not in json.dumps(spark_submit_command(orders, chosen))


@pytest.mark.parametrize(("pipeline", "generation", "key"), [("orders", 1, "k"), ("orders", 0, "other"), ("sensors", 0, "k")])
def test_an_application_id_tells_pipelines_requests_and_tries_apart(pipeline: str, generation: int, key: str) -> None:
    assert app_id_for("orders", 0, "k") == app_id_for("orders", 0, "k")
    assert app_id_for(pipeline, generation, key) != app_id_for("orders", 0, "k")
