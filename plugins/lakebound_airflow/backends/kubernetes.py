"""Applications as driver pods on Kubernetes, submitted by Spark's own ``k8s://`` submission and looked at by kubectl.

Not tried on a real Kubernetes yet: the tests have Spark's submission and kubectl, but their API server is a stand-in.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import structlog

from lakebound.control.applications import holds_lease, submission_is_alive
from lakebound.control.folder import ControlFolder
from lakebound.control.submission import BackendName, Owner, Submission
from lakebound.errors import SubmitFailedError, SubmitUnknownError
from lakebound.landing.kubernetes_command import IMAGE, NAMESPACE, has_image, kubernetes_command, pod_name
from lakebound.landing.lineage_settings import shown_lineage_environment
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.spark_command import spark_environment
from lakebound.landing.spark_resources import spark_resources
from lakebound.settings import Settings
from lakebound_airflow.backends.submitting import NAMES_OF_SECRETS, submit_once

SUBMIT_SECONDS = 180.0
LOOK_SECONDS = 15.0
_ENDED = frozenset({"Succeeded", "Failed"})
_OF_THE_CLIENT = ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "HTTPS_PROXY", "NO_PROXY")

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class PodState:
    """What the API server says of a driver's pod.

    Attributes:
        phase: Pending, Running, Succeeded, Failed or Unknown; None where there is no such pod.
        problem: Why it waits, or how it ended; empty where there is nothing to say.
    """

    phase: str | None
    problem: str = ""


class KubernetesBackend:
    """Talks to the API server of ``spark_master`` (``k8s://https://…``); kubectl and Spark find their login by themselves.

    Args:
        settings: Its ``spark_settings`` name the image, the namespace and, if there is one, the pod template.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def submit(self, run_spec: RunSpec, owner: Owner | None) -> Submission:
        """Start the application, or return the one that already lives for the pipeline.

        Raises:
            SubmitUnknownError: spark-submit did not end, or failed after the API server had taken the pod.
            SubmitFailedError: No image is named, or the API server did not take the pod.
            LakeboundError: What the pipeline and the installation say of Spark cannot be.
        """
        pipeline = run_spec.spec.pipeline
        conf = spark_resources(self._settings, run_spec.spec.spark).conf
        if not has_image(conf):
            raise SubmitFailedError(
                pipeline, f"no image is set for its pods: set {IMAGE} for the installation; see docs/how-to/backends.md"
            )
        namespace = conf.get(NAMESPACE, "default")
        command = kubernetes_command(run_spec, self._settings, self._variables())
        name = f"{namespace}:{pod_name(run_spec.app_id)}"
        # The pod's name is known before it is made: where no answer comes, the API server is asked for it.
        intent = run_spec.submission(BackendName.KUBERNETES, owner).model_copy(update={"remote_id": name})

        def create() -> str:
            self._create(intent, pipeline, command)
            return name

        return submit_once(run_spec.control, intent, self.is_alive, create)

    def is_alive(self, control: ControlFolder, submission: Submission) -> bool:
        """Whether the application lives: by its lease, and where it has none by its pod."""
        if holds_lease(control, submission.app_id):
            return True
        state = self.state(submission)
        if state is None:
            return submission_is_alive(control, submission)
        return state.phase is not None and state.phase not in _ENDED

    def state(self, submission: Submission) -> PodState | None:
        """Return what the API server says of the driver's pod, or None when it cannot be learned."""
        found = _kubectl(submission, "get", "pod", "--ignore-not-found", "--output", "json")
        if found is None:
            return None
        try:
            return pod_state(json.loads(found)) if found.strip() else PodState(None)
        except ValueError:
            return None

    def kill(self, submission: Submission) -> bool:
        """Delete the driver's pod at once; Kubernetes then deletes those of its executors."""
        return (
            _kubectl(submission, "delete", "pod", "--ignore-not-found", "--grace-period=0", "--force", "--wait=false")
            is not None
        )

    def where_log_is(self, submission: Submission) -> str:
        """Return where the log is, and what keeps the pod from running or ended it, as far as the API server says it."""
        if submission.remote_id is None:
            return ""
        namespace, _, pod = submission.remote_id.partition(":")
        state = self.state(submission)
        problem = f" ({state.phase}: {state.problem})" if state is not None and state.problem else ""
        return f"the log of the driver's pod{problem}: kubectl logs --namespace {namespace} {pod}"

    def _create(self, intent: Submission, pipeline: str, command: list[str]) -> None:
        environment = spark_environment(self._settings)
        environment |= {name: os.environ[name] for name in _OF_THE_CLIENT if name in os.environ}
        try:
            done = subprocess.run(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=SUBMIT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as exc:
            problem = f"spark-submit did not end within {SUBMIT_SECONDS:g} s; check that {self._settings.spark_master} answers"
            raise SubmitUnknownError(pipeline, problem) from exc
        except OSError as exc:
            raise SubmitFailedError(pipeline, str(exc)) from exc
        if done.returncode:
            problem = f"spark-submit ended with exit code {done.returncode}: {submission_problem(done.stdout)}"
            state = self.state(intent)
            was_taken = state is not None and state.phase is not None
            raise (SubmitUnknownError if was_taken else SubmitFailedError)(pipeline, problem)

    def _variables(self) -> dict[str, str]:
        return {
            **self._settings.environment(),
            **{name: os.environ[name] for name in NAMES_OF_SECRETS if name in os.environ},
            **shown_lineage_environment(),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "TZ": "UTC",
        }


def pod_state(pod: dict[str, Any]) -> PodState:
    """Return what a pod's description says. Pure."""
    status = pod.get("status") or {}
    phase = status.get("phase") or "Unknown"
    for container in status.get("containerStatuses") or ():
        for kind in ("waiting", "terminated"):
            if found := (container.get("state") or {}).get(kind):
                reason = found.get("reason") or kind
                code = f", exit code {found['exitCode']}" if kind == "terminated" else ""
                message = f": {found['message']}" if kind == "waiting" and found.get("message") else ""
                return PodState(phase, f"{reason}{code}{message}")
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return PodState(phase, f"{condition.get('reason')}: {condition.get('message', '')}".rstrip(": "))
    return PodState(phase, status.get("reason") or "")


def submission_problem(output: str) -> str:
    """Return the line of spark-submit's output that says why it failed. Pure."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith(("Caused by:", "Exception in thread")) or "Message: " in line]
    return (causes or lines or ["it said nothing"])[-1].removeprefix("Caused by: ")


def _kubectl(submission: Submission, verb: str, kind: str, *options: str) -> str | None:
    """Run kubectl on the driver's pod; return its output, or None when it failed."""
    if submission.remote_id is None:
        return None
    namespace, _, pod = submission.remote_id.partition(":")
    command = ["kubectl", verb, kind, pod, "--namespace", namespace, "--request-timeout=10s", *options]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LOOK_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as exc:
        log.warning("kubectl could not be run", pod=submission.remote_id, error=str(exc))
        return None
    if done.returncode:
        log.warning("kubectl failed", pod=submission.remote_id, error=done.stderr.strip()[-500:])
        return None
    return done.stdout
