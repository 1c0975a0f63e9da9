"""The key by which requests to a Spark master's REST server are signed, where the master asks for that.

A master with ``spark.master.rest.filters=org.apache.spark.ui.JWSFilter`` takes only requests with a JSON Web Token that is
signed by the key in ``spark.org.apache.spark.ui.JWSFilter.param.secretKey``. Who may submit to a master may run any program on
its workers, so the key is in no log, no record and no command line: only signed tokens leave the process, and they end soon.
"""

from __future__ import annotations

import base64
import binascii
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import jwt

from lakebound.errors import LakeboundError

FILE_VARIABLE = "LAKEBOUND_SPARK_REST_KEY_FILE"
VALID_SECONDS = 300
"""How long a token counts; the clocks of master and Airflow may differ by that much at most."""

_LEAST_BYTES = 32
"""HS256 takes no shorter key: RFC 7518, section 3.2."""
_KEPT_SECONDS = 60.0
"""A trigger looks at an application every two seconds; it need not ask Airflow for the connection each time."""


class UnusableRestKeyError(LakeboundError):
    """What should be the key of a Spark master's REST server is none."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(
            f"the key of the Spark master's REST server in {where} cannot be used: {problem}. Make one with "
            f"`openssl rand 32 | basenc --base64url`, and give the same to the master (docs/how-to/backends.md)"
        )


@dataclass(frozen=True)
class RestKey:
    """A key, and where it was found.

    Attributes:
        where: Its place, for messages.
        key: The key itself, which is never shown.
    """

    where: str
    key: bytes = field(repr=False)

    def token(self, now: float) -> str:
        """Return a signed token that counts for some minutes from ``now`` (epoch seconds)."""
        return jwt.encode({"iss": "lakebound", "exp": int(now) + VALID_SECONDS}, self.key, algorithm="HS256")


def load_rest_key(conn_id: str | None, environ: Mapping[str, str] | None = None) -> RestKey | None:
    """Return the key, or None where nobody gave one.

    Args:
        conn_id: Airflow connection that holds it as its password; None: the file that LAKEBOUND_SPARK_REST_KEY_FILE names.
        environ: Where the variable is looked for; default: this process's environment.

    Raises:
        UnusableRestKeyError: What was given is no key, or the file cannot be read.
    """
    if conn_id is not None:
        where, text = f"the password of connection {conn_id!r}", _password(conn_id, int(time.time() / _KEPT_SECONDS))
        return RestKey(where, decoded_key(where, text)) if text else None
    name = (os.environ if environ is None else environ).get("LAKEBOUND_SPARK_REST_KEY_FILE")
    if not name:
        return None
    where = f"the file {name} ({FILE_VARIABLE})"
    try:
        text = Path(name).read_text()
    except (OSError, UnicodeDecodeError) as exc:
        problem = (exc.strerror or "it cannot be read") if isinstance(exc, OSError) else "it is not text"
        raise UnusableRestKeyError(where, problem) from None
    return RestKey(where, decoded_key(where, text))


def decoded_key(where: str, text: str) -> bytes:
    """Return the key that a text in base64 holds, with or without padding, in either of its two alphabets.

    Args:
        where: Place of the text, for the message.
        text: What stands there.

    Raises:
        UnusableRestKeyError: It is not base64, or the key is too short.
    """
    stripped = text.strip().rstrip("=").replace("+", "-").replace("/", "_")
    try:
        key = base64.b64decode(stripped + "=" * (-len(stripped) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise UnusableRestKeyError(where, "it is not base64") from None
    if len(key) < _LEAST_BYTES:
        raise UnusableRestKeyError(where, f"it has {len(key)} bytes, and HS256 needs {_LEAST_BYTES} or more")
    return key


@lru_cache(maxsize=64)
def _password(conn_id: str, minute: int) -> str | None:
    # Not at the top: the environment's key is read without Airflow.
    from airflow.sdk import BaseHook
    from airflow.sdk.exceptions import AirflowNotFoundException

    try:
        return BaseHook.get_connection(conn_id).password
    except AirflowNotFoundException:
        return None
