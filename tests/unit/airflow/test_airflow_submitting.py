"""What is left of a submission to another machine that failed, and of one of which nobody knows."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lakebound.control.applications import submission_is_alive
from lakebound.control.folder import ControlFolder
from lakebound.control.submission import BackendName, Submission, read_submission, write_submission
from lakebound.errors import SubmitFailedError, SubmitUnknownError
from lakebound_airflow.backends import standalone
from lakebound_airflow.backends.submitting import submit_once


@pytest.fixture
def control(tmp_path: Path) -> ControlFolder:
    return ControlFolder(tmp_path, "orders")


def submission(app_id: str, at: float | None = None) -> Submission:
    submitted_at = time.time() if at is None else at
    return Submission(app_id=app_id, backend=BackendName.STANDALONE, submitted_at=submitted_at, generation=1)


def raising(error: Exception) -> Callable[[], str]:
    def create() -> str:
        raise error

    return create


def test_one_that_may_have_been_created_keeps_another_from_being_created(control: ControlFolder) -> None:
    intent = submission("app-1")
    with pytest.raises(SubmitUnknownError):
        submit_once(control, intent, submission_is_alive, raising(SubmitUnknownError("orders", "no answer")))
    again = submit_once(control, submission("app-2"), submission_is_alive, raising(AssertionError("it is created twice")))
    assert again.app_id == "app-1"


def test_one_that_was_not_created_leaves_the_record_of_the_one_before(control: ControlFolder) -> None:
    failing = raising(SubmitFailedError("orders", "refused"))
    with pytest.raises(SubmitFailedError):
        submit_once(control, submission("app-1"), submission_is_alive, failing)
    assert read_submission(control) is None
    write_submission(control, submission("app-0", at=1.0))
    with pytest.raises(SubmitFailedError):
        submit_once(control, submission("app-1"), submission_is_alive, failing)
    found = read_submission(control)
    assert found is not None and found.app_id == "app-0"


@contextmanager
def master(answer: bytes | None) -> Iterator[str]:
    """A master that reads a request, and answers so; None: it does not."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        done = threading.Event()

        def serve() -> None:
            connection, _ = server.accept()
            with connection, connection.makefile("rb") as sent:
                headers = [line for line in iter(sent.readline, b"\r\n") if line.lower().startswith(b"content-length")]
                sent.read(int(headers[0].partition(b":")[2]))
                if answer is not None:
                    connection.sendall(answer)
                else:
                    done.wait(10)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        done.set()


def page(status: str, body: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (None, TimeoutError),
        (b"", ConnectionError),
        (page("504 Gateway Timeout", "<html>"), TimeoutError),
        (page("200 OK", "<html>"), ValueError),
        (page("404 Not Found", "<html>"), ValueError),
    ],
)
def test_a_request_that_was_sent_and_not_answered_is_told_from_others(
    answer: bytes | None, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    if answer is None:
        monkeypatch.setattr(standalone, "TIMEOUT_SECONDS", 0.3)
    with master(answer) as url, pytest.raises(error):
        standalone._call(url, {"action": "CreateSubmissionRequest"}, None)


def test_an_answer_of_failure_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with master(page("500 Internal Server Error", json.dumps({"success": False}))) as url:
        assert standalone._call(url, {}, None) == {"success": False}


def test_a_port_where_nobody_listens_was_sent_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(OSError, match="refused") as found:
        standalone._call(f"http://127.0.0.1:{port}", {}, None)
    assert not isinstance(found.value, TimeoutError | ConnectionError)
