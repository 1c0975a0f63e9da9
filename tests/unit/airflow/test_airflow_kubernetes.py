"""What the backend for Kubernetes tells Spark, and what it reads in a pod's description."""

from __future__ import annotations

import itertools
import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.streams.stand_ins import OWNER, orders, settings_fixture  # noqa: F401

from lakebound.control.submission import BackendName, Submission, read_submission
from lakebound.errors import SubmitFailedError
from lakebound.landing.kubernetes_command import kubernetes_command, pod_name
from lakebound.settings import Settings, load_settings
from lakebound_airflow.backends import kubernetes
from lakebound_airflow.backends.choice import backend_for
from lakebound_airflow.backends.kubernetes import KubernetesBackend, PodState, pod_state, submission_problem
from lakebound_airflow.backends.target import Target, UnknownBackendError, target_from_connection, target_from_environment

MASTER = "k8s://https://api.example.com:6443"
CONF = {"spark.kubernetes.container.image": "registry/lakebound:1", "spark.kubernetes.namespace": "lake"}


def on_kubernetes(settings: Settings, **said: Any) -> Settings:
    return replace(settings, spark_master=MASTER, spark_settings=json.dumps({"conf": CONF, **said}))


def confs(command: list[str]) -> dict[str, str]:
    return dict(value.split("=", 1) for flag, value in itertools.pairwise(command) if flag == "--conf")


def test_the_command_starts_one_pod_that_bears_the_applications_name(settings: Settings) -> None:
    found, run_spec = on_kubernetes(settings, max_cores=6, executor_cores=2, driver_memory="2g"), orders(settings)
    command = kubernetes_command(run_spec, found, {"LAKEBOUND_HOME": "/lake"})
    conf = confs(command)
    assert command[command.index("--master") + 1] == MASTER
    assert command[command.index("--deploy-mode") + 1] == "cluster"
    assert command[command.index("--driver-memory") + 1] == "2g"
    assert command[-3] == f"local://{settings.apps}/ingest_stream.py"
    assert (conf["spark.executor.cores"], conf["spark.executor.instances"]) == ("2", "3")
    assert conf["spark.kubernetes.driver.pod.name"] == "lakebound-orders-g0-1"
    assert conf["spark.kubernetes.driver.label.lakebound-app"] == "orders-g0-1"
    assert conf["spark.kubernetes.driverEnv.LAKEBOUND_HOME"] == "/lake"
    assert conf["spark.kubernetes.submission.waitAppCompletion"] == "false"
    assert conf.items() >= CONF.items()
    assert "spark.cores.max" not in conf


def test_jars_are_those_of_the_image(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "jars" / "spark").mkdir(parents=True)
    (tmp_path / "jars" / "spark" / "a.jar").touch()
    found = replace(on_kubernetes(settings), jars=tmp_path / "jars")
    assert confs(kubernetes_command(orders(settings), found, {}))["spark.jars"] == f"local://{tmp_path}/jars/spark/a.jar"


def test_a_long_name_still_is_one_of_a_pod() -> None:
    names = {pod_name(f"{'p' * 60}-g{number}-abc") for number in range(3)}
    assert len(names) == 3
    assert max(map(len, names)) <= 63


def test_without_an_image_nothing_is_submitted(settings: Settings) -> None:
    run_spec = orders(settings)
    backend = backend_for(Target(BackendName.KUBERNETES, MASTER), settings)
    with pytest.raises(SubmitFailedError, match=r"set spark\.kubernetes\.container\.image for the installation"):
        backend.submit(run_spec, OWNER)
    assert read_submission(run_spec.control) is None


def submitted(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, ends: Callable[..., Any], pod: PodState | None
) -> Submission | None:
    """Submit by a spark-submit that ends so; return the record that is left, where the API server says this of the pod."""
    monkeypatch.setattr(kubernetes.subprocess, "run", ends)
    monkeypatch.setattr(KubernetesBackend, "state", lambda *_: pod)
    found, run_spec = on_kubernetes(settings), orders(settings)
    with pytest.raises(SubmitFailedError):
        KubernetesBackend(found).submit(run_spec, OWNER)
    return read_submission(run_spec.control)


def no_end(command: list[str], timeout: float, **_: Any) -> Any:
    raise subprocess.TimeoutExpired(command, timeout)


def exit_code_1(command: list[str], **_: Any) -> Any:
    return subprocess.CompletedProcess(command, 1, stdout="time-out")


@pytest.mark.parametrize(("ends", "pod"), [(no_end, None), (no_end, PodState("Pending")), (exit_code_1, PodState("Pending"))])
def test_a_pod_that_may_be_there_is_looked_for_by_its_name(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, ends: Callable[..., Any], pod: PodState | None
) -> None:
    left = submitted(settings, monkeypatch, ends, pod)
    assert left is not None and left.remote_id == f"lake:{pod_name(left.app_id)}"
    late = left.model_copy(update={"submitted_at": time.time() - 200})  # spark-submit has had its time
    control = orders(settings).control
    for state, lives in ((PodState("Running"), True), (PodState("Failed"), False), (PodState(None), False)):
        monkeypatch.setattr(KubernetesBackend, "state", lambda *_, state=state: state)
        assert KubernetesBackend(on_kubernetes(settings)).is_alive(control, late) is lives
    control.submission.unlink()


@pytest.mark.parametrize("pod", [None, PodState(None)])
def test_a_submission_that_failed_leaves_no_record(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, pod: PodState | None
) -> None:
    assert submitted(settings, monkeypatch, exit_code_1, pod) is None


def test_a_connection_or_the_environment_names_the_api_server(tmp_path: Path) -> None:
    found = target_from_connection("c", "k8s://https://api.example.com", 6443, {"spark_conf": CONF})
    assert (found.backend, found.master, dict(found.spark.conf)) == (BackendName.KUBERNETES, MASTER, CONF)
    settings = load_settings({"LAKEBOUND_HOME": str(tmp_path), "LAKEBOUND_SPARK_MASTER": MASTER})
    assert target_from_environment(settings, {"LAKEBOUND_BACKEND": "kubernetes"}) == Target(BackendName.KUBERNETES, MASTER)
    with pytest.raises(UnknownBackendError, match="LAKEBOUND_SPARK_MASTER"):
        target_from_environment(load_settings({}), {"LAKEBOUND_BACKEND": "kubernetes"})


def waiting(reason: str, message: str) -> dict[str, Any]:
    return {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": reason, "message": message}}}]}


STATES: dict[str, tuple[dict[str, Any], PodState]] = {
    "running": ({"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}, PodState("Running")),
    "no image": (waiting("ImagePullBackOff", "not found"), PodState("Pending", "ImagePullBackOff: not found")),
    "no room": (
        {
            "phase": "Pending",
            "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes: Insufficient cpu"}
            ],
        },
        PodState("Pending", "Unschedulable: 0/3 nodes: Insufficient cpu"),
    ),
    "out of memory": (
        {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]},
        PodState("Failed", "OOMKilled, exit code 137"),
    ),
    "evicted": ({"phase": "Failed", "reason": "Evicted"}, PodState("Failed", "Evicted")),
    "nothing yet": ({}, PodState("Unknown")),
}


@pytest.mark.parametrize("name", STATES)
def test_a_pods_description_says_what_keeps_it(name: str) -> None:
    status, expected = STATES[name]
    assert pod_state({"status": status}) == expected


def test_what_a_terminated_container_said_is_not_repeated() -> None:
    """Kubernetes may put the last lines of a log there, which may quote records."""
    ended = {"terminated": {"reason": "Error", "exitCode": 1, "message": "value 'x' of record"}}
    assert pod_state({"status": {"phase": "Failed", "containerStatuses": [{"state": ended}]}}).problem == "Error, exit code 1"


def test_the_reason_of_a_failed_submission_is_found_in_sparks_output() -> None:
    lines = [
        "INFO a",
        'Exception in thread "main" java.lang.X',
        "\tat b",
        "Caused by: java.net.ConnectException: refused",
        "\tat c",
    ]
    assert submission_problem("\n".join(lines)) == "java.net.ConnectException: refused"
    assert submission_problem("\n") == "it said nothing"
