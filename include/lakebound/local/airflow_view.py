"""What can be seen of Airflow from here, and the one thing that ``lakebound start`` does there.

It is the Airflow that LAKEBOUND_AIRFLOW_URL names, or else the one that ``lakebound up`` started.
"""

from __future__ import annotations

import stat
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import httpx

from lakebound.control.airflow_health import AirflowHealth, components_of
from lakebound.control.processes import wait_until
from lakebound.control.starters import AirflowView
from lakebound.errors import DeadlineExceededError, LakeboundError, ServiceError
from lakebound.local.airflow_client import AirflowClient
from lakebound.local.stack import airflow_of
from lakebound.settings import AirflowAccess, Settings, load_airflow_access

HEALTH_SECONDS = 5.0
"""How long one answer of Airflow may take."""

_FAILURES = (LakeboundError, httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, KeyError)


class LoginFileError(LakeboundError):
    """The login for the Airflow at LAKEBOUND_AIRFLOW_URL cannot be read."""

    def __init__(self, file: Path, problem: str) -> None:
        super().__init__(f"{file} (LAKEBOUND_AIRFLOW_LOGIN_FILE) {problem}; write USER:PASSWORD, or a token, into it")


@dataclass(frozen=True)
class _Reached:
    """An Airflow that can be asked; whether it answers is not known yet."""

    address: str
    is_embedded: bool
    has_login: bool
    client: Callable[[], AirflowClient]


def airflow_health(settings: Settings) -> AirflowHealth | None:
    """Return how Airflow is; None where none is known, or ``lakebound down`` has stopped the embedded one.

    An Airflow that does not answer is a fact, too, and no error.

    Args:
        settings: This machine's.
    """
    found = _find(settings)
    if isinstance(found, _Reached):
        return _health(found)
    # `lakebound down` removes the file: nobody expects that Airflow to run.
    stopped = not settings.services_file.exists()
    return None if stopped else AirflowHealth(f"the embedded Airflow of {settings.home}", is_embedded=True, problem=found)


def look_at_airflow(
    settings: Settings,
    pipeline: str,
    *,
    unpause: bool,
    wait_seconds: float = 0.0,
    tell: Callable[[str], None] = lambda line: None,
) -> AirflowView:
    """Return Airflow as it is seen from here; an Airflow that cannot be reached is a view, too, and no error.

    Args:
        settings: This machine's.
        pipeline: Its ingest DAG is looked at.
        unpause: Whether to unpause it.
        wait_seconds: How long to wait for a DAG that Airflow does not know yet.
        tell: Gets the line that says that it waits.
    """
    found = _find(settings)
    if not isinstance(found, _Reached):
        return AirflowView(found)
    try:
        with found.client() as client:
            return _look(client, f"ingest__{pipeline}", unpause=unpause, wait_seconds=wait_seconds, tell=tell)
    except _FAILURES as exc:
        return AirflowView(f"Airflow cannot be reached ({exc})")


def running_airflow(settings: Settings) -> AirflowClient:
    """Return a client of that Airflow, for someone who cannot do without it.

    Raises:
        ServiceError: There is none.
        LoginFileError: Its login cannot be read.
    """
    found = _find(settings)
    if not isinstance(found, _Reached):
        raise ServiceError("Airflow", f"{found}; start it (lakebound up), or set LAKEBOUND_AIRFLOW_URL")
    return found.client()


def _find(settings: Settings) -> _Reached | str:
    """Return the Airflow that can be asked, or why there is none."""
    access = load_airflow_access()
    if access.url:
        return _Reached(access.url, False, access.login_file is not None, lambda: _client(access))
    airflow = airflow_of(settings)
    if airflow.record is None:
        return f"no Airflow was started from {settings.home}"
    if not airflow.is_running:
        return f"the embedded Airflow of {settings.home} does not run"
    try:
        return _Reached(airflow.url, True, True, airflow.client)
    except ServiceError as exc:
        return str(exc)


def _client(access: AirflowAccess) -> AirflowClient:
    user, password, token = _login(access.login_file) if access.login_file else ("", "", None)
    return AirflowClient(access.url, user, password, HEALTH_SECONDS, token=token, trust_env=True)


def _login(file: Path) -> tuple[str, str, str | None]:
    """Return user and password, or a token: tokens of Airflow have no colon."""
    try:
        mode, text = file.stat().st_mode, file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        # Without a cause: that of a text that is no UTF-8 holds the text.
        raise LoginFileError(file, "cannot be read") from None
    if mode & stat.S_IRWXO:
        raise LoginFileError(file, "is open to every user of the machine; run `chmod o= FILE` with it")
    if mode & stat.S_IWGRP:
        raise LoginFileError(file, "can be written by its group, who could replace the login; run `chmod g-w FILE` with it")
    user, colon, password = text.partition(":")
    if not user:
        raise LoginFileError(file, "is empty, or names no user")
    return (user, password, None) if colon else ("", "", text)


def _health(found: _Reached) -> AirflowHealth:
    seen = AirflowHealth(found.address, found.is_embedded)
    try:
        with _anonymous(found) as client:
            seen = replace(seen, components=components_of(client.health(), time.time()))
    except _FAILURES as exc:
        return replace(seen, problem=f"{found.address} does not answer as an Airflow does: {exc}")
    if not found.has_login:
        return replace(seen, paused_problem="set LAKEBOUND_AIRFLOW_LOGIN_FILE to see which DAGs are paused")
    try:
        with found.client() as client:
            return replace(seen, paused={name: bool(dag["is_paused"]) for name, dag in client.dags().items()})
    except _FAILURES as exc:
        return replace(seen, paused_problem=f"which DAGs are paused is not known: {exc}")


def _anonymous(found: _Reached) -> AirflowClient:
    """Return a client for what needs no login, so that a wrong login hides nothing."""
    return AirflowClient(found.address, "", "", HEALTH_SECONDS, trust_env=not found.is_embedded)


def _look(
    client: AirflowClient, dag_id: str, *, unpause: bool, wait_seconds: float, tell: Callable[[str], None]
) -> AirflowView:
    scheduler = components_of(client.health(), time.time()).get("scheduler")
    view = AirflowView(
        scheduler_is_alive=scheduler is not None and scheduler.is_healthy,
        scheduler_age_seconds=None if scheduler is None else scheduler.age_seconds,
    )
    is_paused = client.find_paused(dag_id)
    if is_paused is None and wait_seconds > 0:
        tell(f"Airflow does not know the DAG {dag_id} yet; waiting up to {wait_seconds:.0f} s for it")
        is_paused = _wait_for_dag(client, dag_id, wait_seconds)
    view = replace(view, is_paused=is_paused, is_unknown=is_paused is None)
    if not (view.is_paused and unpause):
        return view
    client.unpause(dag_id)
    return replace(view, is_paused=False, was_unpaused=True)


def _wait_for_dag(client: AirflowClient, dag_id: str, seconds: float) -> bool | None:
    """Return whether a DAG is paused as soon as Airflow knows it; None where it does not in time."""
    try:
        return wait_until(lambda: _found(client.find_paused(dag_id)), seconds, f"the DAG {dag_id}", poll_seconds=1.0)[0]
    except DeadlineExceededError:
        return None


def _found(is_paused: bool | None) -> tuple[bool, ...]:
    """Return an answer that is true as soon as there is one, also where it says no."""
    return () if is_paused is None else (is_paused,)
