"""The backend for a target, and the one that looks after an application that was submitted before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from lakebound.control.submission import BackendName, Submission
from lakebound.landing.spark_resources import with_installation
from lakebound.settings import Settings
from lakebound_airflow.backends.backend import Backend
from lakebound_airflow.backends.target import Target


def _load_local(settings: Settings, target: Target) -> Backend:
    from lakebound_airflow.backends.local import LocalBackend

    return LocalBackend(settings)


def _load_standalone(settings: Settings, target: Target) -> Backend:
    from lakebound_airflow.backends.standalone import StandaloneBackend

    return StandaloneBackend(settings, rest_url=target.rest_url, key_connection=target.key_connection)


def _load_kubernetes(settings: Settings, target: Target) -> Backend:
    from lakebound_airflow.backends.kubernetes import KubernetesBackend

    return KubernetesBackend(settings)


_LOADERS: Mapping[BackendName, Callable[[Settings, Target], Backend]] = {
    BackendName.LOCAL: _load_local,
    BackendName.STANDALONE: _load_standalone,
    BackendName.KUBERNETES: _load_kubernetes,
}


def backend_for(target: Target, settings: Settings) -> Backend:
    """Return the backend that submits to ``target``, with what the installation says of Spark there.

    Args:
        target: Where applications run.
        settings: This machine's settings.

    Raises:
        SettingError: What the environment says of Spark is wrong.
        SparkSettingsError: That and what the connection says cannot be together.
    """
    return _LOADERS[target.backend](with_installation(replace(settings, spark_master=target.master), target.spark), target)


def backend_of(submission: Submission, settings: Settings) -> Backend:
    """Return the backend that looks after an application that was submitted before, whatever the connections say now."""
    target = Target(submission.backend, settings.spark_master, submission.address, key_connection=submission.key_connection)
    return _LOADERS[submission.backend](settings, target)
