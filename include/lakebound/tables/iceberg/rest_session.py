"""What goes over the wire to a REST catalog: a login that is renewed, a limit of time, and errors in Lakebound's words."""

from __future__ import annotations

import threading
import time
from typing import Any
from urllib.parse import urlsplit

import requests
from pydantic import BaseModel, Field, ValidationError

from lakebound.errors import CatalogRefusedError, CatalogUnavailableError
from lakebound.spec.secret_bindings import WAREHOUSES
from lakebound.spec.secrets import TOKEN, read_token, read_warehouse_secret
from lakebound.spec.warehouse import OAuth2Spec, RestCatalogSpec

_TIMEOUT_SECONDS = (10, 60)
"""To connect, and for the answer: what a catalog has not said by then, the ledger will."""

_UNAVAILABLE = frozenset({408, 425, 429, 500, 502, 503, 504})
_EXPIRED = frozenset({401, 419})
_RENEWED_BEFORE_SECONDS = 60
_LONGEST_REASON = 300


class _TokenAnswer(BaseModel):
    access_token: str = Field(pattern=TOKEN)
    expires_in: float = 3600.0


class Login:
    """The token that each request carries. Threads may share it.

    Args:
        spec: The catalog.
    """

    def __init__(self, spec: RestCatalogSpec) -> None:
        self._spec = spec
        self._lock = threading.Lock()
        self._token = ""
        self._until = 0.0

    @property
    def field(self) -> str:
        """The field of the secret, for messages."""
        return "catalog.oauth2" if self._spec.oauth2 else "catalog.token"

    def header(self, *, renew: bool = False) -> str | None:
        """Return the header ``Authorization``; None for a catalog without a login.

        Args:
            renew: The token that was sent last has expired.

        Raises:
            CatalogUnavailableError: The OAuth2 server does not answer.
            CatalogRefusedError: It refuses the client.
            MissingSecretError: The secret is not where warehouses.yaml says, or cannot be sent.
        """
        if self._spec.token is not None:
            return f"Bearer {read_token(self._spec.token, 'catalog.token', WAREHOUSES)}"
        if self._spec.oauth2 is None:
            return None
        with self._lock:
            if renew or time.monotonic() >= self._until:
                answer = _ask_token(self._spec.oauth2)
                self._token = answer.access_token
                self._until = time.monotonic() + max(answer.expires_in - _RENEWED_BEFORE_SECONDS, answer.expires_in / 2)
            return f"Bearer {self._token}"


class CatalogSession(requests.Session):
    """Requests to one catalog.

    Args:
        spec: The catalog.
    """

    def __init__(self, spec: RestCatalogSpec) -> None:
        super().__init__()
        self._spec = spec
        self._login = Login(spec)
        self.auth = _no_login

    def request(self, method: str, url: str | bytes, *arguments: Any, **options: Any) -> requests.Response:
        """Send a request, with a new token where the one that was sent has expired.

        Raises:
            CatalogUnavailableError: No answer, or one that says that it cannot at this moment: whether it did it is unknown.
            CatalogRefusedError: The login is refused, or what it may do; or a request that changes something is redirected.
        """
        options.setdefault("timeout", _TIMEOUT_SECONDS)
        answer = self._send(method, url, *arguments, **options)
        if answer.status_code in _EXPIRED:
            answer = self._send(method, url, *arguments, renew=True, **options)
        if answer.status_code in _UNAVAILABLE:
            raise CatalogUnavailableError(self._spec.uri, f"status {answer.status_code}: {_reason(answer)}")
        if answer.status_code in _EXPIRED or answer.status_code == 403:
            raise CatalogRefusedError(self._spec.uri, self._login.field, f"status {answer.status_code}: {_reason(answer)}")
        if answer.history and answer.request.method != method.upper():
            # By 301, 302 and 303 a POST becomes a GET (https://www.rfc-editor.org/rfc/rfc9110#status.301), whose answer looks
            # like success.
            where = urlsplit(answer.url)
            reason = f"it redirects a request for a change to {where.scheme}://{where.netloc}"
            raise CatalogRefusedError(self._spec.uri, "catalog.uri", reason)
        return answer

    def _send(self, method: str, url: str | bytes, *arguments: Any, renew: bool = False, **options: Any) -> requests.Response:
        header = self._login.header(renew=renew)
        options["headers"] = {**(options.get("headers") or {}), **({"Authorization": header} if header else {})}
        try:
            return super().request(method, url, *arguments, **options)
        except (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError) as exc:
            raise CatalogUnavailableError(self._spec.uri, _without_address(exc)) from exc


def _no_login(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Leave a request as it is: else requests looks for a password in the user's ``.netrc``, and sends that."""
    return request


def _ask_token(spec: OAuth2Spec) -> _TokenAnswer:
    data = {"grant_type": "client_credentials", **({"scope": spec.scope} if spec.scope else {})}
    secret = read_warehouse_secret(spec.client_secret, "catalog.oauth2.client_secret")
    try:
        answer = requests.post(spec.server_uri, data=data, auth=(spec.client_id, secret), timeout=_TIMEOUT_SECONDS)
    except (requests.ConnectionError, requests.Timeout) as exc:
        raise CatalogUnavailableError(spec.server_uri, _without_address(exc)) from exc
    if answer.status_code in _UNAVAILABLE:
        raise CatalogUnavailableError(spec.server_uri, f"status {answer.status_code}")
    try:
        if answer.ok:
            return _TokenAnswer.model_validate_json(answer.content)
    except ValidationError:
        # Without a cause: it quotes the answer, which may hold a token.
        raise CatalogRefusedError(spec.server_uri, "catalog.oauth2.server_uri", "the answer holds no token") from None
    raise CatalogRefusedError(spec.server_uri, "catalog.oauth2", f"status {answer.status_code}: {_reason(answer)}")


def _reason(answer: requests.Response) -> str:
    """Return what the catalog says in words; nothing of a page that a proxy made."""
    try:
        body = answer.json()
        error = body.get("error") if isinstance(body, dict) else None
        said = error.get("message") if isinstance(error, dict) else error
    except ValueError:
        said = None
    return " ".join(str(said or answer.reason or "no reason is given").split())[:_LONGEST_REASON]


def _without_address(error: BaseException) -> str:
    """Return which kind of error it is, and its innermost reason."""
    inner = error
    while inner.__context__ is not None:
        inner = inner.__context__
    return f"{type(error).__name__}: {inner}"[:_LONGEST_REASON]
