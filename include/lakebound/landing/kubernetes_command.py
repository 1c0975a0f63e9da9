"""The spark-submit command that starts an application as a driver pod on Kubernetes. Starts nothing, asks nobody."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path

from lakebound.landing.run_spec import RunSpec
from lakebound.landing.spark_command import APPLICATION, app_name, spark_conf
from lakebound.landing.spark_resources import SparkResources, spark_resources
from lakebound.settings import Settings

NAMESPACE = "spark.kubernetes.namespace"
IMAGE = "spark.kubernetes.container.image"
_DRIVER_IMAGE = "spark.kubernetes.driver.container.image"
_LONGEST_NAME = 63
"""Of a label's value, and of a pod whose name is its host name, too."""


def kubernetes_command(run_spec: RunSpec, settings: Settings, variables: Mapping[str, str]) -> list[str]:
    """Return the command, which ends as soon as the API server has the driver's pod.

    The image has the same installation, jars and entry points at the same paths as this machine.

    Args:
        run_spec: The application's orders; its JSON is the application's only argument.
        settings: This machine's settings; the master begins with ``k8s://``.
        variables: The driver's environment, without secrets: a pod's description shows it.
    """
    resources = spark_resources(settings, run_spec.spec.spark)
    conf = {**spark_conf(run_spec, settings), **_pod_conf(run_spec, settings, resources), **_environment(variables)}
    conf.pop("spark.cores.max", None)  # of a standalone master
    options = ["--master", settings.spark_master, "--deploy-mode", "cluster", "--name", app_name(run_spec.app_id)]
    options += ["--driver-memory", resources.driver_memory]
    for key, value in sorted(conf.items()):
        options += ["--conf", f"{key}={value}"]
    orders = run_spec.model_dump_json(by_alias=True)
    submit = str(Path(sys.executable).parent / "spark-submit")
    return [submit, *options, f"local://{settings.apps / APPLICATION}", "--run-spec", orders]


def pod_name(app_id: str) -> str:
    """Return the name of the driver's pod: the same for the same application, so that a second submission is refused."""
    name = f"lakebound-{app_id}"
    if len(name) <= _LONGEST_NAME:
        return name
    return f"lakebound-{hashlib.sha256(app_id.encode()).hexdigest()[:20]}"


def has_image(conf: Mapping[str, str]) -> bool:
    """Return whether settings name the image of the driver's pod."""
    return bool(conf.get(IMAGE) or conf.get(_DRIVER_IMAGE))


def _pod_conf(run_spec: RunSpec, settings: Settings, resources: SparkResources) -> dict[str, str]:
    cores = resources.executor_cores or 1
    jars = sorted(f"local://{jar}" for jar in (settings.jars / "spark").glob("*.jar"))
    return {
        **({"spark.jars": ",".join(jars)} if jars else {}),
        "spark.driver.cores": str(resources.driver_cores),
        "spark.executor.cores": str(cores),
        "spark.executor.instances": str(max(1, resources.max_cores // cores)),
        "spark.kubernetes.driver.label.lakebound-app": run_spec.app_id[-_LONGEST_NAME:].lstrip("-"),
        "spark.kubernetes.driver.label.lakebound-pipeline": run_spec.spec.pipeline,
        "spark.kubernetes.driver.pod.name": pod_name(run_spec.app_id),
        "spark.kubernetes.submission.waitAppCompletion": "false",
    }


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    return {f"spark.kubernetes.driverEnv.{name}": value for name, value in variables.items()}
