"""Applications on a Spark standalone cluster, submitted through the master's REST server.

spark-submit refuses Python applications in cluster mode on standalone. The REST server takes any main class, so what is
submitted is SparkSubmit itself: the master starts it as a driver on a worker, and there it starts the Python driver.
Airflow's workers, the triggerer and Spark's workers share ``LAKEBOUND_HOME`` and the same installation (same paths).
"""

from __future__ import annotations

import json
import os
import sys
import time
from functools import partial
from http import HTTPStatus
from importlib.metadata import version
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import structlog

from lakebound.control.applications import holds_lease, submission_is_alive
from lakebound.control.folder import ControlFolder
from lakebound.control.submission import BackendName, Owner, Submission
from lakebound.errors import LakeboundError, SubmitFailedError, SubmitUnknownError
from lakebound.landing.lineage_settings import shown_lineage_environment
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.spark_command import app_name, spark_conf, submit_arguments
from lakebound.landing.spark_resources import spark_resources
from lakebound.settings import Settings
from lakebound_airflow.backends.submitting import NAMES_OF_SECRETS, submit_once
from lakebound_airflow.hooks.rest_key import FILE_VARIABLE, VALID_SECONDS, RestKey, load_rest_key

TIMEOUT_SECONDS = 10.0

# A driver in these states has not ended. RELAUNCHING: its worker was lost and the master starts it again elsewhere.
_ACTIVE = frozenset({"SUBMITTED", "RUNNING", "RELAUNCHING"})
_ENDED = frozenset({"FINISHED", "KILLED", "FAILED", "ERROR"})
_NOT_ALLOWED = frozenset({401, 403})

log = structlog.get_logger(__name__)


class NotAllowedError(LakeboundError):
    """A Spark master's REST server did not take a request, because it was not signed, or by another key."""

    def __init__(self, rest_url: str, code: int, key: RestKey | None) -> None:
        if key is None:
            super().__init__(
                f"the REST server of the Spark master at {rest_url} takes only signed requests (HTTP {code}): give its key as "
                f"the password of the Airflow connection, or in a file that {FILE_VARIABLE} names; see docs/how-to/backends.md"
            )
            return
        super().__init__(
            f"the REST server of the Spark master at {rest_url} refused the signature (HTTP {code}): the key in {key.where} is "
            f"not the one in spark.org.apache.spark.ui.JWSFilter.param.secretKey of the master, or the two clocks differ by "
            f"more than {VALID_SECONDS // 60} minutes"
        )


class StandaloneBackend:
    """Talks to one master.

    Args:
        settings: Its ``spark_master`` is where the application's executors come from.
        rest_url: The master's REST server; None suffices to look after an application whose record names it.
        key_connection: The Airflow connection whose password signs requests; None: the file of the environment does, if any.
    """

    def __init__(self, settings: Settings, rest_url: str | None = None, key_connection: str | None = None) -> None:
        self._settings = settings
        self._rest_url = rest_url
        self._key_connection = key_connection

    def submit(self, run_spec: RunSpec, owner: Owner | None) -> Submission:
        """Start the application, or return the one that already lives for the pipeline.

        Raises:
            SubmitFailedError: The master does not answer, or refused.
            LakeboundError: What the pipeline and the installation say of Spark cannot be.
        """
        request = self._request(run_spec)
        intent = run_spec.submission(BackendName.STANDALONE, owner, address=self._rest_url, key_connection=self._key_connection)
        create = partial(self._create, run_spec.spec.pipeline, request)
        return submit_once(run_spec.control, intent, self.is_alive, create)

    def is_alive(self, control: ControlFolder, submission: Submission) -> bool:
        """Whether the application lives: its driver, or its Python, which may outlive a driver that was killed."""
        if holds_lease(control, submission.app_id):
            return True
        state = self.state(submission)
        if state in _ENDED:
            return False
        return state in _ACTIVE or submission_is_alive(control, submission)

    def state(self, submission: Submission) -> str | None:
        """Return the driver's state at the master, such as RUNNING, or None when it cannot be learned."""
        if submission.remote_id is None or submission.address is None:
            return None
        try:
            answer = self._call(submission.address, f"status/{submission.remote_id}")
        except (OSError, ValueError, LakeboundError):
            return None
        state = answer.get("driverState")
        return str(state) if state else None

    def kill(self, submission: Submission) -> bool:
        """Have the master end the driver at once."""
        if submission.remote_id is None or submission.address is None:
            return False
        try:
            answer = self._call(submission.address, f"kill/{submission.remote_id}", body={})
        except (OSError, ValueError, LakeboundError) as exc:
            log.warning("the Spark master did not end the driver", driver=submission.remote_id, error=str(exc))
            return False
        return bool(answer.get("success"))

    def where_log_is(self, submission: Submission) -> str:
        """Return where the log is: a standalone cluster keeps it on the worker that ran the driver."""
        return f"the log of driver {submission.remote_id} is on its Spark worker; the Spark master's web page has a link to it"

    def _create(self, pipeline: str, request: dict[str, Any]) -> str:
        if self._rest_url is None:
            raise SubmitFailedError(pipeline, "the REST address of the Spark master is unknown; see docs/how-to/backends.md")
        try:
            answer = self._call(self._rest_url, "create", body=request)
        except NotAllowedError as exc:
            raise SubmitFailedError(pipeline, str(exc)) from exc
        except (TimeoutError, ConnectionError) as exc:
            raise SubmitUnknownError(pipeline, f"the Spark master at {self._rest_url} gave no answer ({exc})") from exc
        except (OSError, ValueError) as exc:
            hint = "set spark.master.rest.enabled=true on the master"
            raise SubmitFailedError(
                pipeline, f"no REST server of a Spark master answers at {self._rest_url} ({exc}); {hint}"
            ) from exc
        if not answer.get("success") or not answer.get("submissionId"):
            raise SubmitFailedError(pipeline, f"the Spark master refused: {answer.get('message', 'no reason given')}")
        return str(answer["submissionId"])

    def _call(self, rest_url: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask the REST server, with a signature where there is a key.

        Raises:
            NotAllowedError: It does not take the request without a signature, or with this one.
            UnusableRestKeyError: There is a key that is none.
            TimeoutError, ConnectionError: The request was sent, and the answer did not come.
            OSError: It cannot be reached.
            ValueError: It is no Spark master.
        """
        key = load_rest_key(self._key_connection)
        try:
            return _call(f"{rest_url}/v1/submissions/{path}", body, key.token(time.time()) if key else None)
        except HTTPError as exc:
            raise NotAllowedError(rest_url, exc.code, key) from None

    def _request(self, run_spec: RunSpec) -> dict[str, Any]:
        resources = spark_resources(self._settings, run_spec.spec.spark)
        # appArgs must hold --master: the driver's own SparkSubmit would else silently run local[*].
        return {
            "action": "CreateSubmissionRequest",
            "clientSparkVersion": version("pyspark"),
            "appResource": "",
            "mainClass": "org.apache.spark.deploy.SparkSubmit",
            "appArgs": submit_arguments(run_spec, self._settings),
            # Secrets do not travel here: Spark's pages show a driver's environment. They are set on the workers.
            "environmentVariables": {
                **self._settings.environment(),
                **{name: os.environ[name] for name in NAMES_OF_SECRETS if name in os.environ},
                **shown_lineage_environment(),
                "PYSPARK_PYTHON": sys.executable,
                "PYSPARK_DRIVER_PYTHON": sys.executable,
                "TZ": "UTC",
            },
            "sparkProperties": {
                # The JVM of the driver speaks with its worker before it reads appArgs, for instance with authentication.
                **resources.conf,
                "spark.app.name": app_name(run_spec.app_id),
                "spark.driver.cores": str(resources.driver_cores),
                # SparkSubmit runs the application in its own JVM: those in appArgs come too late.
                "spark.driver.extraJavaOptions": spark_conf(run_spec, self._settings)["spark.driver.extraJavaOptions"],
                "spark.driver.memory": resources.driver_memory,
                "spark.driver.supervise": "false",
                "spark.master": self._settings.spark_master,
                "spark.submit.deployMode": "cluster",
            },
        }


def _of_failure(error: HTTPError) -> Any:
    """Return what the master says of a failure; a gateway before it answers with a page when the master is late."""
    try:
        return json.load(error)
    except ValueError:
        if error.code < HTTPStatus.INTERNAL_SERVER_ERROR:
            raise
        raise TimeoutError(f"status {error.code}") from error


def _call(url: str, body: dict[str, Any] | None, token: str | None) -> dict[str, Any]:
    """Ask the REST server and return its JSON answer, also when it is an answer of failure; raise HTTPError if not allowed."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    request = Request(url, data=data, headers=headers, method="GET" if data is None else "POST")
    try:
        with urlopen(request, timeout=TIMEOUT_SECONDS) as response:
            answer: Any = json.load(response)
    except HTTPError as exc:
        if exc.code in _NOT_ALLOWED:
            raise
        answer = _of_failure(exc)
    except URLError as exc:
        raise OSError(str(exc.reason)) from exc
    if not isinstance(answer, dict):
        raise ValueError(f"not an answer of a Spark master: {answer!r}")
    return answer
