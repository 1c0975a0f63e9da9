"""A small client of Airflow's stable REST API (v2)."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx
from tenacity import retry, retry_if_result, stop_after_attempt, wait_random

from lakebound.errors import LakeboundError

JsonBody = dict[str, Any]

_DATABASE_ATTEMPTS = 6

ANSWER_SECONDS = 60.0
"""How long one answer may take: while other processes write to Airflow's SQLite file, the API server answers nobody for a
second at a time, again and again (``airflow_config.busy_timeout_seconds``). On a busy machine, 20 s were not enough."""

_PAGE = 100
"""Airflow's default for ``[api] maximum_page_limit``: it gives no more at once, and less where that is set lower."""


class AirflowAnswerError(LakeboundError):
    """Airflow's REST API did not answer, or refused.

    Attributes:
        status: The answer's; None where there was none.
    """

    def __init__(self, method: str, path: str, reason: str, status: int | None = None) -> None:
        self.status = status
        super().__init__(
            f"Airflow: {method} {path}: {reason}; check that Airflow runs (lakebound status) and that the name is correct"
        )


def _is_database_error(answer: httpx.Response) -> bool:
    """Whether Airflow's database refused the statement, which is then rolled back: to ask again is right for any request.

    SQLite refuses at once, without its busy timeout, whoever read before another wrote and now writes himself
    (https://www.sqlite.org/rescode.html#busy_snapshot). At Airflow's start all of its components write.
    """
    return answer.status_code == httpx.codes.INTERNAL_SERVER_ERROR and '"Database error"' in answer.text


class AirflowClient:
    """Speaks to one Airflow; logs in by itself, and again when its token has ended."""

    def __init__(
        self,
        url: str,
        user: str,
        password: str,
        timeout_seconds: float = ANSWER_SECONDS,
        *,
        token: str | None = None,
        trust_env: bool = False,
    ) -> None:
        """Make a client; nothing is asked yet.

        Args:
            url: Address of the API server.
            user: The name to log in with; empty: nobody logs in.
            password: Of the user.
            timeout_seconds: How long one answer may take.
            token: Used in place of a login.
            trust_env: Whether the environment's proxies and certificates are used; on this machine's own Airflow they are not.
        """
        self._login = {"username": user, "password": password} if user else None
        self._http = httpx.Client(base_url=url, timeout=timeout_seconds, trust_env=trust_env)
        self._token = token

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def health(self) -> dict[str, dict[str, str | None]]:
        """Return the state of each component; needs no login."""
        answer: dict[str, dict[str, str | None]] = self._send("GET", "/api/v2/monitor/health", login=False).json()
        return answer

    def warm_execution_api(self, timeout_seconds: float) -> None:
        """Ask the API that tasks use for a sign of life; its server prepares itself at the first question."""
        self._send("GET", "/execution/health", login=False, timeout=timeout_seconds)

    def dags(self) -> dict[str, JsonBody]:
        """Return the DAGs that are there, by id."""
        return {dag["dag_id"]: dag for dag in self._all("/dags", "dags")}

    def is_paused(self, dag_id: str) -> bool:
        """Return whether a DAG is paused."""
        return bool(self._get(f"/dags/{quote(dag_id)}")["is_paused"])

    def find_paused(self, dag_id: str) -> bool | None:
        """Return whether a DAG is paused; None where Airflow does not know it (yet)."""
        try:
            return self.is_paused(dag_id)
        except AirflowAnswerError as error:
            if error.status == httpx.codes.NOT_FOUND:
                return None
            raise

    def import_errors(self) -> list[JsonBody]:
        """Return the DAG files that could not be read, with their stack traces."""
        return self._all("/importErrors", "import_errors")

    def unpause(self, dag_id: str) -> None:
        """Let the DAG's schedule run."""
        self._set_paused(dag_id, False)

    def pause(self, dag_id: str) -> None:
        """Keep the DAG's schedule from starting further runs."""
        self._set_paused(dag_id, True)

    def trigger(self, dag_id: str, conf: JsonBody | None = None) -> str:
        """Start a run; return its id."""
        body = {"logical_date": None, "conf": conf or {}}
        return str(self._send("POST", f"/api/v2/dags/{dag_id}/dagRuns", json=body).json()["dag_run_id"])

    def runs(self, dag_id: str) -> list[JsonBody]:
        """Return the latest runs of a DAG, the newest first."""
        runs: list[JsonBody] = self._get(f"/dags/{dag_id}/dagRuns", order_by="-run_after", limit=_PAGE)["dag_runs"]
        return runs

    def run(self, dag_id: str, run_id: str) -> JsonBody:
        """Return one run."""
        return self._get(f"/dags/{dag_id}/dagRuns/{quote(run_id)}")

    def task_instances(self, dag_id: str, run_id: str) -> list[JsonBody]:
        """Return the task instances of a run, with ``state`` and ``try_number``."""
        path = f"/dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances"
        return self._all(path, "task_instances")

    def clear(self, dag_id: str, run_id: str, task_ids: list[str]) -> None:
        """Clear tasks of a run, as a person does in the UI: what runs is ended, and they run again."""
        body = {"dry_run": False, "dag_run_id": run_id, "task_ids": task_ids, "only_failed": False}
        self._send("POST", f"/api/v2/dags/{dag_id}/clearTaskInstances", json=body)

    def ensure_pool(self, name: str, slots: int, description: str) -> None:
        """Make a pool; one of that name which is there is left as it is.

        Args:
            name: Name of the pool.
            slots: Number of tasks that may run in it at once.
            description: Text for Airflow's UI.
        """
        body = {"name": name, "slots": slots, "description": description, "include_deferred": False}
        if name not in {pool["name"] for pool in self._all("/pools", "pools")}:
            self._send("POST", "/api/v2/pools", json=body)

    def answer(self, dag_id: str, run_id: str, task_id: str, option: str) -> None:
        """Answer a task that waits for a person, as the UI's *Required Actions* do; a second answer is refused."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances/{task_id}/-1/hitlDetails"
        self._send("PATCH", path, json={"chosen_options": [option], "params_input": {}})

    def question(self, dag_id: str, run_id: str, task_id: str) -> JsonBody:
        """Return what a task asks a person: ``subject``, ``body``, ``options``, and the answer once it is given."""
        return self._get(f"/dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances/{task_id}/-1/hitlDetails")

    def log(self, dag_id: str, run_id: str, task_id: str, try_number: int = 1, map_index: int = -1) -> str:
        """Return the log of one try of a task, a line per event."""
        path = f"/dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances/{task_id}/logs/{try_number}"
        content = self._get(path, map_index=map_index, full_content=True)["content"]
        return "\n".join(line if isinstance(line, str) else _log_line(line) for line in content)

    def _set_paused(self, dag_id: str, paused: bool) -> None:
        self._send("PATCH", f"/api/v2/dags/{dag_id}", json={"is_paused": paused}, params={"update_mask": "is_paused"})

    def _all(self, path: str, name: str) -> list[JsonBody]:
        """Return the whole of a list that Airflow gives in pages."""
        found: list[JsonBody] = []
        while True:
            answer = self._get(path, limit=_PAGE, offset=len(found))
            found += answer[name]
            if not answer[name] or len(found) >= answer["total_entries"]:
                return found

    def _get(self, path: str, **params: Any) -> JsonBody:
        answer: JsonBody = self._send("GET", f"/api/v2{path}", params=params).json()
        return answer

    def _send(self, method: str, path: str, login: bool = True, **request: Any) -> httpx.Response:
        try:
            answer = self._ask(method, path, login, **request)
            if answer.status_code == httpx.codes.UNAUTHORIZED and login and self._login is not None:
                self._token = None
                answer = self._ask(method, path, login, **request)
        except httpx.HTTPError as error:
            raise AirflowAnswerError(method, path, f"{type(error).__name__} {error}") from error
        if answer.is_error:
            raise AirflowAnswerError(method, path, f"{answer.status_code} {answer.text[:500]}", answer.status_code)
        return answer

    @retry(
        retry=retry_if_result(_is_database_error),
        stop=stop_after_attempt(_DATABASE_ATTEMPTS),
        wait=wait_random(0.2, 1.0),
        retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
    )
    def _ask(self, method: str, path: str, login: bool, **request: Any) -> httpx.Response:
        return self._http.request(method, path, headers=self._headers(login), **request)

    def _headers(self, login: bool) -> dict[str, str]:
        headers = {"Accept": "application/json"}
        if login:
            if self._token is None and self._login is not None:
                answer = self._http.post("/auth/token", json=self._login)
                if answer.is_error:
                    raise AirflowAnswerError("POST", "/auth/token", f"{answer.status_code} {answer.text[:500]}")
                self._token = str(answer.json()["access_token"])
            if self._token is not None:
                headers["Authorization"] = f"Bearer {self._token}"
        return headers


def _log_line(event: JsonBody) -> str:
    details = {key: value for key, value in event.items() if key not in ("event", "timestamp", "level")}
    parts = [event.get("timestamp"), event.get("level"), event.get("event"), details or None]
    return " ".join(str(part) for part in parts if part)
