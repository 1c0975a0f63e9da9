"""What an application gets of Spark: defaults, installation and pipeline, and where each of them reaches."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from tests.support.tables.validating import expectations

from lakebound.control.desired import Desired
from lakebound.errors import SettingError
from lakebound.inspection.validation.submission import validation_command, validation_orders
from lakebound.landing.run_spec import RunSpec, make_run_spec
from lakebound.landing.spark_command import spark_conf, spark_environment, spark_submit_command
from lakebound.landing.spark_resources import installation_of, planning_conf, spark_resources, with_installation
from lakebound.operations.maintenance.submission import maintenance_command, maintenance_orders
from lakebound.settings import Settings, load_settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.source import source_hash
from lakebound.spec.spark import InstallationSpark, SparkSpec
from lakebound.spec.spark_rules import TUNABLE, refused_name

ORDERS = {
    "pipeline": "orders",
    "topics": ["orders"],
    "connection": {"bootstrap_servers": "127.0.0.1:9092"},
    "value": {"format": "bytes"},
    "freshness": "1s",
    "tables": [{"format": "delta", "name": "lake.orders"}],
}
CLUSTER = "spark://master:7077"

CLUSTER_ONLY = {"spark.driver.bindAddress", "spark.driver.host"}
"""They may be given, and count in a cluster only: on one machine the driver keeps to the loopback address."""


def settings(tmp_path: Path, master: str = "local[2]", installation: object = None) -> Settings:
    environ = {"LAKEBOUND_HOME": str(tmp_path), "LAKEBOUND_JARS": str(tmp_path), "LAKEBOUND_SPARK_MASTER": master}
    if installation is not None:
        environ["LAKEBOUND_SPARK_SETTINGS"] = json.dumps(installation)
    return load_settings(environ)


def orders(found: Settings, **spark: object) -> RunSpec:
    return make_run_spec(PipelineSpec.model_validate({**ORDERS, "spark": spark}), found, Desired(), "orders-g0-abc")


def confs(command: list[str]) -> dict[str, str]:
    return dict(value.split("=", 1) for flag, value in itertools.pairwise(command) if flag == "--conf")


def memory(command: list[str]) -> str:
    return command[command.index("--driver-memory") + 1]


def test_the_first_application_does_not_take_the_whole_cluster(tmp_path: Path) -> None:
    found = settings(tmp_path, CLUSTER)
    conf = confs(spark_submit_command(orders(found), found))
    assert (conf["spark.cores.max"], conf["spark.executor.memory"]) == ("2", "1g")
    assert "spark.executor.cores" not in conf
    assert memory(spark_submit_command(orders(found), found)) == "1g"


def test_the_pipeline_wins_over_the_installation_and_that_over_the_defaults(tmp_path: Path) -> None:
    found = settings(tmp_path, CLUSTER, {"driver_memory": "2g", "max_cores": 6, "conf": {"spark.task.cpus": "1"}})
    orders_of = orders(found, max_cores=4, executor_cores=2, conf={"spark.network.timeout": "90s"})
    command = spark_submit_command(orders_of, found)
    conf = confs(command)
    assert memory(command) == "2g"
    assert (conf["spark.cores.max"], conf["spark.executor.cores"]) == ("4", "2")
    assert (conf["spark.task.cpus"], conf["spark.network.timeout"]) == ("1", "90s")


def test_one_large_executor_is_possible_without_naming_the_maximum(tmp_path: Path) -> None:
    assert spark_resources(settings(tmp_path), SparkSpec(executor_cores=4)).max_cores == 4
    assert spark_resources(settings(tmp_path), SparkSpec(executor_cores=1)).max_cores == 2


def test_one_machine_has_no_executors_of_a_cluster(tmp_path: Path) -> None:
    found = settings(tmp_path)
    conf = confs(spark_submit_command(orders(found, max_cores=4, executor_memory="2g"), found))
    assert not {"spark.cores.max", "spark.executor.memory", "spark.executor.cores"} & set(conf)


def test_tuning_may_be_changed_and_the_loopback_address_of_one_machine_not(tmp_path: Path) -> None:
    conf = {"spark.sql.shuffle.partitions": "8", "spark.driver.host": "airflow-1"}
    here, there = settings(tmp_path), settings(tmp_path, CLUSTER)
    found = spark_conf(orders(here, conf=conf), here)
    assert (found["spark.sql.shuffle.partitions"], found["spark.driver.host"]) == ("8", "127.0.0.1")
    assert spark_conf(orders(there, conf=conf), there)["spark.driver.host"] == "airflow-1"


def test_open_windows_are_kept_by_the_file_system_that_sparks_rocksdb_asks_for(tmp_path: Path) -> None:
    windows = {
        "value": {"format": "json", "schema": "at TIMESTAMP"},
        "transform": "transforms.minutes.per_minute",
        "state": {"event_time": "at", "watermark": "1m"},
    }
    here = settings(tmp_path)
    run = make_run_spec(PipelineSpec.model_validate({**ORDERS, **windows}), here, Desired(), "orders-g0-abc")
    other, own = spark_conf(orders(here), here), spark_conf(run, here)
    assert {name for name in other if name not in own} == {
        "spark.hadoop.fs.AbstractFileSystem.file.impl",
        "spark.hadoop.fs.file.impl",
    }


@pytest.mark.parametrize("master", ["local[2]", CLUSTER])
def test_whatever_lakebound_sets_is_refused_in_yaml_or_may_be_tuned(tmp_path: Path, master: str) -> None:
    (tmp_path / "spark").mkdir()
    (tmp_path / "spark" / "a.jar").touch()
    found = settings(tmp_path, master)
    maintenance = confs(maintenance_command(maintenance_orders(orders(found).spec, found, "maintain"), found))
    own = set(spark_conf(orders(found), found)) | set(maintenance)
    assert {name for name in own if refused_name(name) is None} <= TUNABLE | CLUSTER_ONLY
    assert set(spark_conf(orders(found), found)) >= TUNABLE


def test_maintenance_and_validation_get_settings_and_the_heap_and_keep_what_they_need(tmp_path: Path) -> None:
    found = settings(tmp_path, CLUSTER, {"driver_memory": "3g"})
    conf = {"spark.eventLog.enabled": "true", "spark.sql.shuffle.partitions": "8", "spark.hadoop.fs.s3a.endpoint": "http://s3"}
    spec = orders(found, conf=conf).spec
    maintained = maintenance_command(maintenance_orders(spec, found, "maintain"), found)
    validated = validation_command(validation_orders(spec, found, expectations(), "validate"), found)
    for command in (maintained, validated):
        assert memory(command) == "3g"
        assert confs(command)["spark.eventLog.enabled"] == "true"
        assert confs(command)["spark.hadoop.fs.s3a.endpoint"] == "http://s3"
        assert confs(command)["spark.sql.shuffle.partitions"] == "1"
        assert not [name for name in confs(command) if name.startswith("spark.hadoop.fs.file")]


def test_a_check_takes_the_settings_of_file_systems_and_nothing_of_the_cluster(tmp_path: Path) -> None:
    found = settings(tmp_path, CLUSTER, {"driver_memory": "3g", "conf": {"spark.eventLog.enabled": "true"}})
    pipeline = SparkSpec(max_cores=4, conf={"spark.hadoop.fs.s3a.endpoint": "http://s3", "spark.task.cpus": "1"})
    assert planning_conf(found, pipeline) == {"spark.hadoop.fs.s3a.endpoint": "http://s3"}


def test_a_connection_adds_to_the_environment_and_reaches_child_processes(tmp_path: Path) -> None:
    found = with_installation(settings(tmp_path, installation={"max_cores": 4}), SparkSpec(driver_memory="2g"))
    assert installation_of(found) == InstallationSpark(max_cores=4, driver_memory="2g")
    assert installation_of(load_settings(found.environment())) == installation_of(found)
    assert with_installation(settings(tmp_path), SparkSpec()) == settings(tmp_path)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("max_cores=4", "it is not a JSON object"),
        ("[1]", "it is not a JSON object"),
        ('{"max_cores": 0}', "the JSON in it: max_cores: must be greater than or equal to 1"),
        ('{"conf": {"spark.master": "x"}}', "conf.spark.master: cannot be set here"),
    ],
)
def test_an_installation_that_means_nothing_is_refused(tmp_path: Path, text: str, what: str) -> None:
    found = load_settings({"LAKEBOUND_HOME": str(tmp_path), "LAKEBOUND_SPARK_SETTINGS": text})
    with pytest.raises(SettingError, match=f"LAKEBOUND_SPARK_SETTINGS: .*{what}"):
        spark_submit_command(orders(settings(tmp_path)), found)


def test_an_application_is_outdated_when_its_spark_changed(tmp_path: Path) -> None:
    found = settings(tmp_path)
    hashes = {source_hash(orders(found, **spark).spec, tmp_path) for spark in ({}, {"max_cores": 3}, {"max_cores": 4})}
    assert len(hashes) == 3


def test_the_secret_of_the_cluster_reaches_drivers_of_a_cluster_by_their_environment_alone(tmp_path: Path) -> None:
    environ = {"_SPARK_AUTH_SECRET": "s3cret"}
    there = settings(tmp_path, CLUSTER)
    assert spark_environment(there, environ)["_SPARK_AUTH_SECRET"] == "s3cret"
    assert "_SPARK_AUTH_SECRET" not in spark_environment(settings(tmp_path), environ)
    assert "s3cret" not in json.dumps(spark_submit_command(orders(there), there))
