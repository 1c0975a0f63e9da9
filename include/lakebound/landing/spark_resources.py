"""What one application gets of Spark in the end: the pipeline's own words, then the installation's, then the defaults. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from lakebound.errors import SettingError
from lakebound.settings import Settings
from lakebound.spec.spark import InstallationSpark, SparkSettingsError, SparkSpec, installation_spark, merged

HADOOP = "spark.hadoop."
VARIABLE = "LAKEBOUND_SPARK_SETTINGS"
DRIVER_MEMORY = "1g"
DRIVER_CORES = 1
EXECUTOR_MEMORY = "1g"
MAX_CORES = 2
"""Of all executors together. Without a limit Spark gives the first application every core that the cluster has."""


@dataclass(frozen=True)
class SparkResources:
    """What an application gets.

    Attributes:
        driver_memory: Heap of the driver's JVM.
        driver_cores: Cores of the driver, where it runs on a worker.
        executor_memory: Heap of each executor.
        executor_cores: Cores of each executor; None: one executor per worker, with what it gets there.
        max_cores: Of all executors together.
        conf: Further settings; they never name what Lakebound sets itself, except for tuning.
    """

    driver_memory: str
    driver_cores: int
    executor_memory: str
    executor_cores: int | None
    max_cores: int
    conf: Mapping[str, str]

    def cluster_conf(self) -> dict[str, str]:
        """Return the settings of executors that a cluster gives."""
        cores = {} if self.executor_cores is None else {"spark.executor.cores": str(self.executor_cores)}
        return {"spark.cores.max": str(self.max_cores), "spark.executor.memory": self.executor_memory, **cores}


def spark_resources(settings: Settings, pipeline: SparkSpec) -> SparkResources:
    """Return what an application of a pipeline gets.

    Args:
        settings: This machine's settings, with what is said for all of the installation.
        pipeline: What the pipeline's YAML says; it wins.

    Raises:
        SettingError: What the installation says is wrong.
        SparkSettingsError: The two cannot be together.
    """
    said = merged(installation_of(settings), pipeline)
    return SparkResources(
        driver_memory=said.driver_memory or DRIVER_MEMORY,
        driver_cores=said.driver_cores or DRIVER_CORES,
        executor_memory=said.executor_memory or EXECUTOR_MEMORY,
        executor_cores=said.executor_cores,
        max_cores=said.max_cores or max(MAX_CORES, said.executor_cores or 0),
        conf=said.conf,
    )


def planning_conf(settings: Settings, pipeline: SparkSpec) -> dict[str, str]:
    """Return the settings that count where Spark only plans, or tries some records, on one core of this machine.

    That Spark takes nothing of a cluster and leaves no event log; a transform may read files by the settings of Hadoop.

    Args:
        settings: This machine's settings, with what is said for all of the installation.
        pipeline: What the pipeline's YAML says; it wins.

    Raises:
        SettingError: What the installation says is wrong.
        SparkSettingsError: The two cannot be together.
    """
    conf = spark_resources(settings, pipeline).conf
    return {name: value for name, value in conf.items() if name.startswith(HADOOP)}


def installation_of(settings: Settings) -> InstallationSpark:
    """Return what is said for all of the installation.

    Raises:
        SettingError: It is wrong.
    """
    if not settings.spark_settings:
        return InstallationSpark()
    try:
        body = json.loads(settings.spark_settings)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise SettingError(VARIABLE, "it is not a JSON object, such as " + '{"max_cores": 4}')
    try:
        return installation_spark("the JSON in it", body)
    except SparkSettingsError as exc:
        raise SettingError(VARIABLE, str(exc)) from None


def with_installation(settings: Settings, further: InstallationSpark) -> Settings:
    """Return settings whose installation says something further, which wins over what it said before.

    Args:
        settings: This machine's settings.
        further: What is said in addition, such as in an Airflow connection.

    Raises:
        SettingError: What it said before is wrong.
        SparkSettingsError: The two cannot be together.
    """
    both = merged(installation_of(settings), further)
    text = "" if both == InstallationSpark() else both.model_dump_json(exclude_none=True)
    return replace(settings, spark_settings=text)
