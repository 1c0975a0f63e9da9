"""The key that signs requests to a Spark master: where it is found, what it must be, and that it is never shown."""

from __future__ import annotations

import base64
import time
from pathlib import Path

import jwt
import pytest
from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from lakebound.control.submission import BackendName, Submission
from lakebound.settings import load_settings
from lakebound_airflow.backends.choice import backend_for, backend_of
from lakebound_airflow.backends.target import target_from_connection
from lakebound_airflow.hooks import rest_key
from lakebound_airflow.hooks.rest_key import RestKey, UnusableRestKeyError, decoded_key, load_rest_key

KEY = b"\xfb\xff" + bytes(range(30))
TEXTS = {
    "as basenc prints it": base64.urlsafe_b64encode(KEY).decode() + "\n",
    "without padding": base64.urlsafe_b64encode(KEY).decode().rstrip("="),
    "in the other alphabet": base64.b64encode(KEY).decode(),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_key_is_read_as_it_is_usually_written(name: str) -> None:
    assert decoded_key("here", TEXTS[name]) == KEY


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no key, but a pass phrase", "it is not base64"),
        ("ä" * 44, "it is not base64"),
        ("", "it has 0 bytes"),
        (base64.b64encode(KEY[:31]).decode(), "it has 31 bytes, and HS256 needs 32 or more"),
    ],
)
def test_what_is_no_key_is_refused_and_not_repeated(text: str, problem: str) -> None:
    with pytest.raises(UnusableRestKeyError, match=f"in here cannot be used: {problem}") as caught:
        decoded_key("here", text)
    assert not text or text not in str(caught.value)


def test_a_token_is_signed_ends_soon_and_the_key_is_not_shown() -> None:
    key, now = RestKey("here", KEY), time.time()
    assert jwt.decode(key.token(now), KEY, algorithms=["HS256"])["exp"] == int(now) + 300
    with pytest.raises(jwt.InvalidSignatureError):
        jwt.decode(key.token(now), bytes(32), algorithms=["HS256"])
    assert "key=" not in repr(key)
    assert KEY.hex() not in repr(key)


def test_the_key_is_in_the_file_that_the_environment_names(tmp_path: Path) -> None:
    file = tmp_path / "key"
    environ = {"LAKEBOUND_SPARK_REST_KEY_FILE": str(file)}
    with pytest.raises(UnusableRestKeyError, match=r"the file .*/key \(LAKEBOUND_SPARK_REST_KEY_FILE\).*No such file"):
        load_rest_key(None, environ)
    file.write_text(TEXTS["as basenc prints it"])
    found = load_rest_key(None, environ)
    assert found is not None
    assert found.key == KEY
    assert load_rest_key(None, {}) is None


def test_the_key_is_the_password_of_the_connection_and_is_asked_for_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def get_connection(conn_id: str) -> Connection:
        asked.append(conn_id)
        if conn_id != "spark_a":
            raise AirflowNotFoundException(conn_id)
        return Connection(conn_id=conn_id, conn_type="spark", host="spark://m", password=TEXTS["without padding"])

    monkeypatch.setattr(BaseHook, "get_connection", get_connection)
    monkeypatch.setattr(rest_key.time, "time", lambda: 120.0)
    rest_key._password.cache_clear()
    found = [load_rest_key("spark_a") for _ in range(3)]
    assert [one and one.key for one in found] == [KEY] * 3
    assert load_rest_key("spark_b") is None
    assert asked == ["spark_a", "spark_b"]
    rest_key._password.cache_clear()


def test_a_record_names_the_connection_and_never_its_password(tmp_path: Path) -> None:
    settings = load_settings({"LAKEBOUND_HOME": str(tmp_path)})
    target = target_from_connection("spark_a", "spark://m", 7077, {}, has_password=True)
    assert backend_for(target, settings)._key_connection == "spark_a"  # type: ignore[attr-defined]
    record = Submission(app_id="a", backend=BackendName.STANDALONE, address="http://m:6066", key_connection="spark_a")
    assert backend_of(record, settings)._key_connection == "spark_a"  # type: ignore[attr-defined]
    assert backend_of(record.model_copy(update={"key_connection": None}), settings)._key_connection is None  # type: ignore[attr-defined]
