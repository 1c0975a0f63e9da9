"""What goes over the wire to a schema registry: bounded answers, a limit of time, and errors in Lakebound's words.

It follows no redirect, uses no proxy and no password of the environment or of ``.netrc``: the login goes to the address in
registries.yaml alone, as that of Kafka goes to its brokers.
"""

from __future__ import annotations

import base64
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from lakebound.errors import (
    LakeboundError,
    RegistryAnswerError,
    RegistryForbiddenError,
    RegistryLoginError,
    RegistryUnavailableError,
)
from lakebound.registry.answers import NoSuchPathError, TooLargeAnswerError, cut, is_object, read_problem
from lakebound.registry.tls import tls_context
from lakebound.spec.registry import RegistrySpec
from lakebound.spec.secret_bindings import REGISTRIES
from lakebound.spec.secrets import read_operators_secret, read_token

MOST_BYTES = 4 * 1024 * 1024
"""Of one answer. The topic in which Confluent's registry keeps schemas takes 1 MB of each by default."""
_UNAVAILABLE = frozenset({408, 425, 429, 500, 502, 503, 504})
_TLS_SPOKEN_TO_NONE = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"})


@dataclass(frozen=True)
class Answer:
    """What a registry answered.

    Attributes:
        body: The JSON of what was asked for; None where the registry has none.
    """

    body: bytes | None


class RegistrySession:
    """Requests to one registry. Threads may share it."""

    def __init__(self, name: str, spec: RegistrySpec) -> None:
        """Read certificates and keys; nothing is asked yet.

        Args:
            name: Of the registry in registries.yaml.
            spec: How it is reached.

        Raises:
            NamedFileError: A file of certificates or the key cannot be used.
            MissingSecretError: A secret is not where the file says.
        """
        self._name, self._spec = name, spec
        verify = tls_context(spec, f"registries.{name}") if spec.url.startswith("https:") else False
        self._has_answered = False
        self._client = httpx.Client(verify=verify, trust_env=False, follow_redirects=False)

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def get(self, path: str, parameters: Mapping[str, str], what: str) -> Answer:
        """Return what the registry has at a path.

        Args:
            path: Below the address of the registry, each part of it quoted.
            parameters: After the question mark.
            what: What is asked for, for messages, such as ``schema 17``.

        Raises:
            RegistryUnavailableError: No answer in time, or one that says that it cannot at this moment; or what answers stands
                before a registry which has answered before.
            RegistryLoginError: The login is refused, or the registry's certificate.
            RegistryForbiddenError: Its user may not read this.
            RegistryAnswerError: What answers is no registry with Confluent's API, and none has answered before.
            NoSuchPathError: What answers is no registry, as it is of a path that only some of these registries have.
            TooLargeAnswerError: The answer is too large.
            MissingSecretError: A secret is not where the file says, or cannot be sent.
        """
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json", "Accept-Encoding": "identity"}
        headers |= self._login()
        timeout = self._spec.request_timeout_seconds
        ends = time.monotonic() + timeout
        url = f"{self._spec.url}/{path}"
        try:
            request = self._client.build_request("GET", url, params=dict(parameters), headers=headers, timeout=timeout)
            answer = self._client.send(request, stream=True)
            try:
                body = self._bounded(answer, ends)
            finally:
                answer.close()
        except httpx.LocalProtocolError:
            # Its text quotes the header, which may be the login.
            raise self._refusal("no request can be made of its address and login") from None
        except (httpx.InvalidURL, UnicodeError) as exc:
            raise self._refusal(f"its address names no host: {cut(str(exc))}") from None
        except (httpx.TransportError, OSError) as exc:
            raise self._transport_error(exc) from None
        return self._judged(answer, body, what)

    def note_registry(self) -> None:
        """Note that a registry answers at the address, now or when the pipeline read its schemas before."""
        self._has_answered = True

    def no_registry(self, reason: str) -> LakeboundError:
        """Return the error of an answer that is no registry's.

        Where a registry has answered before, something stands before it for a while: a gateway without its backend, a page that
        says so, a redirect to a login. It passes.
        """
        if self._has_answered:
            return self._away(f"what answers there at this moment is no schema registry: {reason}")
        return self._refusal(reason)

    def _before_registry(self, said: str, status: int) -> LakeboundError:
        """Return the error of a refusal without the reason that a registry gives: of a firewall, or a limit of requests."""
        fields = f"; if it stays so, check {self._spec.login_fields}" if status == 401 else ""
        return self.no_registry(f"{said} without a reason{fields}")

    def _refusal(self, reason: str) -> RegistryAnswerError:
        return RegistryAnswerError(self._name, self._spec.url, reason)

    def _login(self) -> dict[str, str]:
        """Return the header of the login; a secret is read anew each time, so that a new one counts at once."""
        spec, field = self._spec, f"registries.{self._name}"
        if spec.token is not None:
            return {"Authorization": f"Bearer {read_token(spec.token, f'{field}.token', REGISTRIES)}"}
        if spec.username is None or spec.password is None:
            return {}
        password = read_operators_secret(spec.password, f"{field}.password", REGISTRIES)
        # As the environment has it, also where that is no UTF-8.
        login = f"{spec.username}:{password}".encode(errors="surrogateescape")
        return {"Authorization": f"Basic {base64.b64encode(login).decode()}"}

    def _bounded(self, answer: httpx.Response, ends: float) -> bytes:
        """Return the body of an answer; it is read as it comes, and no further than it may go."""
        body = bytearray()
        for chunk in answer.iter_raw():
            body += chunk
            if len(body) > MOST_BYTES:
                raise TooLargeAnswerError(f"its answer has more than {MOST_BYTES // 1024 // 1024} MiB")
            if time.monotonic() > ends:
                raise self._away(f"its answer was not complete after {self._spec.request_timeout_seconds:g} s")
        return bytes(body)

    def _judged(self, answer: httpx.Response, body: bytes, what: str) -> Answer:
        status = answer.status_code
        if status == 200:
            self._check_encoding(answer)
            return Answer(body)
        problem = read_problem(body)
        said = f"status {status}" + (f": {cut(problem.message)}" if problem is not None and problem.message else "")
        if status in (401, 403) and self._has_answered and not is_object(body):
            raise self._before_registry(said, status)
        if status == 401:
            raise RegistryLoginError(self._name, self._spec.url, said, self._spec.login_fields)
        if status == 403:
            raise RegistryForbiddenError(self._name, self._spec.url, what, said)
        if status in _UNAVAILABLE:
            raise self._away(said)
        if 300 <= status < 400:
            raise self.no_registry(_redirect(answer))
        if status in (404, 422) and problem is not None and problem.is_of(status):
            return Answer(None)
        if problem is None:
            said = f"{said} without a reason"
        raise NoSuchPathError(said) if status == 404 else self.no_registry(said)

    def _check_encoding(self, answer: httpx.Response) -> None:
        """Raise an error where a body was compressed all the same: what it becomes has no bound."""
        if answer.headers.get("content-encoding", "identity") != "identity":
            raise self.no_registry("it compresses its answer, which was not asked for")

    def _away(self, reason: str) -> RegistryUnavailableError:
        return RegistryUnavailableError(self._name, self._spec.url, reason)

    def _transport_error(self, error: BaseException) -> LakeboundError:
        """Return what it means that no whole answer came."""
        inner = _innermost(error)
        if isinstance(inner, ssl.SSLCertVerificationError):
            reason = f"its certificate is not accepted: {cut(inner.verify_message)}"
            return RegistryLoginError(self._name, self._spec.url, reason, "tls_ca_file and url")
        if isinstance(inner, ssl.SSLError) and inner.reason in _TLS_SPOKEN_TO_NONE:
            return self.no_registry("it does not speak TLS; the address should begin with http://")
        if isinstance(inner, ssl.SSLError) and "ALERT" in (inner.reason or ""):
            reason = f"it refuses the TLS connection: {inner.reason}"
            return RegistryLoginError(self._name, self._spec.url, reason, "tls_certificate_file and tls_key_file")
        if isinstance(error, httpx.TimeoutException):
            return self._away(f"no answer within {self._spec.request_timeout_seconds:g} s")
        said = str(inner)
        if isinstance(error, httpx.ProtocolError):
            said = said.partition(":")[0]  # What follows is what came: it may be our own request, with the login.
        return self._away(cut(f"{type(inner).__name__}: {said}"))


def _redirect(answer: httpx.Response) -> str:
    try:
        parts = urlsplit(answer.headers.get("location", ""))
        host = (
            f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
            if parts.hostname
            else "another path"
        )
    except ValueError:
        host = "an address that is none"
    return f"it redirects to {cut(host)}, which is not followed"


def _innermost(error: BaseException) -> BaseException:
    """Return the error of the system that an error of the client was made of."""
    seen = {id(error)}
    while (below := error.__cause__ or error.__context__) is not None and id(below) not in seen:
        seen.add(id(below))
        error = below
    return error
