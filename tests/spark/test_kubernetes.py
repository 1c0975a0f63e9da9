"""Spark's real submission and the real kubectl against a stand-in for the API server. No pod runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tests.support.streams.kubernetes_api import KubernetesApi, kubernetes_api
from tests.support.streams.long_form import only_in_long_form
from tests.support.streams.stand_ins import OWNER, orders, settings_fixture  # noqa: F401

from lakebound.control.submission import BackendName, read_submission
from lakebound.errors import SubmitFailedError
from lakebound.settings import Settings
from lakebound_airflow.backends.choice import backend_for, backend_of
from lakebound_airflow.backends.kubernetes import KubernetesBackend, PodState
from lakebound_airflow.backends.target import Target

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

TEMPLATE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "spec": {
        "containers": [{"name": "driver", "volumeMounts": [{"name": "lake", "mountPath": "/lake"}]}],
        "volumes": [{"name": "lake", "persistentVolumeClaim": {"claimName": "lake"}}],
    },
}


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KubernetesApi]:
    with kubernetes_api() as found:
        found.write_kubeconfig(tmp_path / "kubeconfig")
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        monkeypatch.setenv("KUBECACHEDIR", str(tmp_path / "cache"))
        yield found


@pytest.fixture
def backend(api: KubernetesApi, settings: Settings, tmp_path: Path) -> KubernetesBackend:
    (tmp_path / "template.yaml").write_text(yaml.safe_dump(TEMPLATE))
    conf = {
        "spark.kubernetes.container.image": "registry/lakebound:1",
        "spark.kubernetes.driver.podTemplateFile": str(tmp_path / "template.yaml"),
        "spark.kubernetes.driver.secretKeyRef.LAKEBOUND_SECRET_ORDERS": "kafka:orders",
        "spark.kubernetes.namespace": "lake",
    }
    installed = replace(settings, spark_settings=json.dumps({"driver_memory": "2g", "conf": conf}))
    found = backend_for(Target(BackendName.KUBERNETES, f"k8s://{api.url}"), installed)
    assert isinstance(found, KubernetesBackend)
    return found


def test_sparks_submission_creates_the_driver_and_kubectl_finds_and_ends_it(
    backend: KubernetesBackend, api: KubernetesApi, settings: Settings
) -> None:
    run_spec = orders(settings)
    submission = backend.submit(run_spec, OWNER)
    assert submission.remote_id == "lake:lakebound-orders-g0-1"
    pod = api.pod("lake", "lakebound-orders-g0-1")
    (driver,) = pod["spec"]["containers"]
    assert pod["metadata"]["labels"].items() >= {"lakebound-app": "orders-g0-1", "lakebound-pipeline": "orders"}.items()
    assert driver["image"] == "registry/lakebound:1"
    assert {"name": "lake", "mountPath": "/lake"}.items() <= driver["volumeMounts"][0].items()
    assert run_spec.model_dump_json(by_alias=True) in driver["args"]
    variables = {one["name"]: one for one in driver["env"]}
    assert variables["LAKEBOUND_HOME"]["value"] == str(settings.home)
    assert variables["LAKEBOUND_SECRET_ORDERS"]["valueFrom"]["secretKeyRef"] == {"name": "kafka", "key": "orders"}
    if shutil.which("kubectl") is not None:
        _watch(backend, api, settings)
    orders(settings).control.submission.unlink()


def _watch(backend: KubernetesBackend, api: KubernetesApi, settings: Settings) -> None:
    """The pod is found by what the record says, and ended."""
    control = orders(settings).control
    recorded = read_submission(control)
    assert recorded is not None
    watcher, pod = backend_of(recorded, settings), api.pod("lake", "lakebound-orders-g0-1")
    assert isinstance(watcher, KubernetesBackend)
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    pod["status"] = {"phase": "Pending", "containerStatuses": [{"state": {"waiting": waiting}}]}
    assert watcher.is_alive(control, recorded)
    assert watcher.where_log_is(recorded) == (
        "the log of the driver's pod (Pending: ImagePullBackOff: no such image): "
        "kubectl logs --namespace lake lakebound-orders-g0-1"
    )
    pod["status"] = {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"reason": "Error", "exitCode": 1}}}]}
    assert not watcher.is_alive(control, recorded)
    assert watcher.kill(recorded)
    assert watcher.state(recorded) == PodState(None)
    assert not watcher.is_alive(control, recorded)


@only_in_long_form  # shortly: a master that refuses, in tests/spark/test_standalone.py
def test_an_api_server_that_refuses_is_said_and_leaves_no_record(
    backend: KubernetesBackend, api: KubernetesApi, settings: Settings
) -> None:
    api.refusal = (403, 'pods is forbidden: User "airflow" cannot create resource "pods" in the namespace "lake"')
    run_spec = orders(settings)
    with pytest.raises(SubmitFailedError, match='User "airflow" cannot create resource'):
        backend.submit(run_spec, OWNER)
    assert read_submission(run_spec.control) is None
