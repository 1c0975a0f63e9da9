"""What a client makes of whatever answers: bounded in bytes and time, and no login to anybody but the registry."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.registry.said_answers import Said, answering
from tests.support.waiting import STRETCH

from lakebound.errors import (
    LakeboundError,
    RegistryAnswerError,
    RegistryForbiddenError,
    RegistryLoginError,
    RegistryUnavailableError,
    UnusableSecretError,
)
from lakebound.formats.schemas import Reference, SchemaText
from lakebound.redaction import redacted
from lakebound.registry import references, session
from lakebound.registry.client import RegistryClient, UnusableSchemaError
from lakebound.spec.registry import RegistrySpec

SCHEMA = {"schema": '"string"'}
NOT_FOUND = Said(b'{"error_code": 40403, "message": "Schema 9 not found"}', 404)


def said(body: object, status: int = 200) -> Said:
    return Said(json.dumps(body).encode(), status)


def client_of(url: str, **more: Any) -> RegistryClient:
    return RegistryClient("company", RegistrySpec.model_validate({"url": url, "request_timeout_seconds": 5, **more}))


def schema_by(answer: Said, **more: Any) -> SchemaText | None:
    with answering(lambda path: answer) as server:
        return client_of(server.url, **more).schema(17)


def test_a_schema_is_read_by_its_id_and_by_its_guid() -> None:
    with answering(lambda path: said({**SCHEMA, "unknown": {"a": 1}})) as server:
        client = client_of(f"{server.url}/apis/ccompat/v7/")
        assert client.schema(17) == client.schema("8d7c1f60-6f3a-4a0e-9a6e-0f3a5a2b1c4d") == SchemaText("avro", '"string"')
        assert [request.path for request in server.seen] == [
            "/apis/ccompat/v7/schemas/ids/17",
            "/apis/ccompat/v7/schemas/guids/8d7c1f60-6f3a-4a0e-9a6e-0f3a5a2b1c4d",
        ]
        assert {request.authorization for request in server.seen} == {None}


@pytest.mark.parametrize(
    ("name", "kind"), [(None, "avro"), ("AVRO", "avro"), ("PROTOBUF", "protobuf"), ("JSON", "json_schema")]
)
def test_the_format_is_that_of_its_type(name: str | None, kind: str) -> None:
    found = schema_by(said({"schema": "x", "schemaType": name}))
    assert found is not None and (found.kind, found.text) == (kind, "x")


def test_what_the_registry_does_not_have_is_none() -> None:
    assert schema_by(NOT_FOUND) is None
    with answering(lambda path: NOT_FOUND) as server:
        client = client_of(server.url)
        assert client.versions("orders-value") == [] and client.version("orders-value") is None
        assert client.version("orders-value", 3, deleted=True) is None and client.compatibility("orders-value") is None
        assert server.seen[0].path == "/subjects/orders-value/versions" and "deleted=true" in server.seen[2].path


NOT_OF_A_REGISTRY = [404, 0, -1, 40, 4040, 50001, 42201, 403, 404000, 10**30]


@pytest.mark.parametrize("code", NOT_OF_A_REGISTRY)
def test_a_status_404_that_is_not_the_registry_s_own_says_of_no_schema_that_it_is_missing(code: int) -> None:
    """Such as of a wrong path, or of a gateway before the registry: records would go to quarantine."""
    answer = said({"error_code": code, "message": "HTTP 404 Not Found"}, 404)
    with answering(lambda path: answer) as server:
        client = client_of(server.url)
        asked: list[Callable[[], object]] = [
            lambda: client.schema(17),
            lambda: client.schema("8d7c1f60-6f3a-4a0e-9a6e-0f3a5a2b1c4d"),
            lambda: client.versions("orders-value"),
            lambda: client.version("orders-value", 1),
            lambda: client.compatibility("orders-value"),
        ]
        for ask in asked:
            with pytest.raises(RegistryAnswerError, match="status 404: HTTP 404 Not Found"):
                ask()


@pytest.mark.parametrize(
    ("code", "status"), [*((code, 404) for code in range(40401, 40410)), *((code, 422) for code in (42201, 42202, 42208))]
)
def test_each_code_of_a_registry_says_that_it_has_none(code: int, status: int) -> None:
    assert schema_by(said({"error_code": code, "message": "no"}, status)) is None


def test_a_status_422_that_is_not_the_registry_s_own_is_told() -> None:
    with pytest.raises(RegistryAnswerError, match="status 422: no"):
        schema_by(said({"error_code": 422, "message": "no"}, 422))


def test_a_subject_with_any_characters_is_one_part_of_the_path() -> None:
    with answering(lambda path: said([1, 2])) as server:
        assert client_of(server.url).versions("a/../b?c=d#é") == [1, 2]
        assert server.seen[0].path == "/subjects/a%2F..%2Fb%3Fc%3Dd%23%C3%A9/versions"


ANSWERS: dict[str, tuple[Said, type[Exception], str]] = {
    "the password is wrong": (said({"error_code": 401, "message": "no"}, 401), RegistryLoginError, "status 401: no; check"),
    "its user may not read it": (said({"error_code": 40301, "message": "no"}, 403), RegistryForbiddenError, "read schema 17"),
    "it is busy": (Said(b"<html>", 503), RegistryUnavailableError, "status 503"),
    "its store is away": (said({"error_code": 50001, "message": "Kafka"}, 500), RegistryUnavailableError, "status 500: Kafka"),
    "there are too many requests": (Said(b"", 429), RegistryUnavailableError, "status 429"),
    "a page of the web": (Said(b"<!doctype html><p>hunter2"), RegistryAnswerError, "it answers with HTML"),
    "nothing": (Said(b""), RegistryAnswerError, "it answers with nothing"),
    "other JSON": (said({"ok": True}), RegistryAnswerError, "JSON that is not a schema"),
    "a list": (said([1]), RegistryAnswerError, "JSON that is not a schema"),
    "a schema that is no text": (said({"schema": {"a": 1}}), RegistryAnswerError, "JSON that is not a schema"),
    "half of an answer": (Said(b'{"schema": "a'), RegistryAnswerError, "text that is not JSON"),
    "bytes": (Said(b"\xff\xfe\x00"), RegistryAnswerError, "text that is not JSON"),
    "JSON of any depth": (Said(b"[" * 200_000), RegistryAnswerError, "text that is not JSON"),
    "a path that is not there": (Said(b"<html>404", 404), RegistryAnswerError, "status 404 without a reason"),
    "a status that means nothing": (Said(b"", 204), RegistryAnswerError, "status 204"),
    "a compressed bomb": (
        Said(gzip.compress(bytes(50_000_000)), headers={"Content-Encoding": "gzip"}),
        RegistryAnswerError,
        "compresses its answer",
    ),
    "a huge body": (Said(bytes(5_000_000)), UnusableSchemaError, "more than 4 MiB"),
    "a body without an end": (Said(itertools.repeat(bytes(65_536))), UnusableSchemaError, "more than 4 MiB"),
    "a version that is none": (said({**SCHEMA, "version": -1}), UnusableSchemaError, "version: Input should be greater"),
    "an id that no record can name": (said({**SCHEMA, "id": 2**32}), UnusableSchemaError, "id: Input should be less"),
    "a type that nobody reads": (said({"schema": "x", "schemaType": "XML"}), UnusableSchemaError, "its type is XML"),
}


@pytest.mark.parametrize("what", ANSWERS)
def test_what_is_wrong_is_said_in_one_line(what: str) -> None:
    answer, error, words = ANSWERS[what]
    with pytest.raises(error) as caught:
        schema_by(answer)
    assert words in str(caught.value) and "\n" not in str(caught.value) and "hunter2" not in str(caught.value)
    assert len(str(caught.value)) < 600
    assert isinstance(caught.value, LakeboundError) == (error is not UnusableSchemaError)


def test_what_a_registry_says_is_one_line_without_signs_for_a_terminal() -> None:
    with pytest.raises(RegistryLoginError) as caught:
        schema_by(said({"error_code": 401, "message": "a\nb\x1b[2J" + "x" * 10_000}, 401))
    assert "a b [2J" in str(caught.value) and len(str(caught.value)) < 600


def test_no_redirect_is_followed_and_the_login_goes_to_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEBOUND_SECRET_REGISTRY", "hunter2")
    login = {"username": "ada", "password": {"env": "LAKEBOUND_SECRET_REGISTRY"}}
    with answering(lambda path: said(SCHEMA)) as other:
        to_other = Said(b"", 302, {"Location": f"{other.url}/schemas/ids/17"})
        with pytest.raises(
            RegistryAnswerError, match=r"it redirects to http://127\.0\.0\.1:\d+, which is not followed"
        ) as caught:
            schema_by(to_other, **login)
        assert other.seen == [] and "hunter2" not in str(caught.value)
    for location in ("/schemas/ids/17", "http://[", ""):
        with pytest.raises(RegistryAnswerError, match="it redirects to"):
            schema_by(Said(b"", 301, {"Location": location}))


def test_the_login_is_sent_and_read_anew_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(lambda path: said(SCHEMA)) as server:
        monkeypatch.setenv("LAKEBOUND_SECRET_REGISTRY", "one")
        client = client_of(server.url, token={"env": "LAKEBOUND_SECRET_REGISTRY"})
        client.schema(1)
        monkeypatch.setenv("LAKEBOUND_SECRET_REGISTRY", "two")
        client.schema(1)
        client_of(server.url, username="ada", password={"env": "LAKEBOUND_SECRET_REGISTRY"}).schema(1)
        assert [request.authorization for request in server.seen] == ["Bearer one", "Bearer two", "Basic YWRhOnR3bw=="]


TOKENS = ["hunter2\n", "hunter2 ", "hunter2\t\r\n", "\u2028hunter2"]
TOKENS += ["hun\nter2", "hun\tter2", "hunter2é", "hunter2\udc80", "hunter2\x7f"]


@pytest.mark.parametrize("token", TOKENS)
def test_no_error_tells_a_token_that_cannot_be_sent(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    """What only stands at its end is no part of it, as in a file."""
    monkeypatch.setenv("LAKEBOUND_SECRET_REGISTRY", token)
    with answering(lambda path: said(SCHEMA)) as server:
        client = client_of(server.url, token={"env": "LAKEBOUND_SECRET_REGISTRY"})
        if token.strip() == "hunter2":
            assert client.schema(1) is not None and server.seen[0].authorization == "Bearer hunter2"
            return
        with pytest.raises(UnusableSecretError) as caught:
            client.schema(1)
        assert "registries.company.token" in redacted(caught.value) and not caught.value.passes
        assert "hun" not in redacted(caught.value) and "ter2" not in redacted(caught.value) and server.seen == []


@pytest.mark.parametrize("password", [*TOKENS, "hun:ter2", "\x01"])
def test_any_password_can_be_sent(monkeypatch: pytest.MonkeyPatch, password: str) -> None:
    monkeypatch.setenv("LAKEBOUND_SECRET_REGISTRY", password)
    with answering(lambda path: said(SCHEMA)) as server:
        client = client_of(server.url, username="ada", password={"env": "LAKEBOUND_SECRET_REGISTRY"})
        assert client.schema(1) is not None
        login = base64.b64decode((server.seen[0].authorization or "").removeprefix("Basic "))
        assert login == f"ada:{password.strip()}".encode(errors="surrogateescape")


def test_no_error_quotes_a_request_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last guard, were a login to come here all the same."""
    monkeypatch.setattr(session.RegistrySession, "_login", lambda self: {"Authorization": "Bearer hunter2\n"})
    with answering(lambda path: said(SCHEMA)) as server, pytest.raises(RegistryAnswerError) as caught:
        client_of(server.url).schema(1)
    assert "hunter2" not in redacted(caught.value)


def test_no_error_quotes_what_a_server_sends_back_that_is_not_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEBOUND_SECRET_REGISTRY", "hunter2")
    told = Said(b"", headers={"Bearer hunter2": "x"})
    with answering(lambda path: told) as server, pytest.raises(RegistryUnavailableError) as caught:
        client_of(server.url, token={"env": "LAKEBOUND_SECRET_REGISTRY"}).schema(1)
    assert "hunter2" not in redacted(caught.value) and "illegal header line" in redacted(caught.value)


def test_no_proxy_and_no_login_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login eve password hunter2\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with answering(lambda path: said(SCHEMA)) as server:
        assert client_of(server.url).schema(1) is not None
        assert server.seen[0].authorization is None


def test_a_registry_without_guids_refuses_them_alone() -> None:
    answers: dict[str, object] = {"/schemas/types": ["AVRO"], "/schemas/ids/1": SCHEMA}
    guid = "8d7c1f60-6f3a-4a0e-9a6e-0f3a5a2b1c4d"
    with answering(lambda path: said(answers[path]) if path in answers else Said(b"", 404)) as server:
        client = client_of(server.url)
        with pytest.raises(UnusableSchemaError, match="cannot be asked for GUIDs"):
            client.schema(guid)
        assert client.schema(1) is not None
        with pytest.raises(RegistryAnswerError, match="status 404"):
            client_of(f"{server.url}/elsewhere").schema(guid)


def drops() -> Iterator[bytes]:
    while True:
        time.sleep(0.05)
        yield b" "


@pytest.mark.parametrize("slow", [lambda: Said(drops()), lambda: (time.sleep(1.5), said(SCHEMA))[1]])
def test_an_answer_that_comes_in_drops_has_a_limit_of_time(slow: Callable[[], Said]) -> None:
    started = time.monotonic()
    with answering(lambda path: slow()) as server, pytest.raises(RegistryUnavailableError, match=r"0\.3 s"):
        client_of(server.url, request_timeout_seconds=0.3).schema(1)
    assert time.monotonic() - started < 10 * STRETCH


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://no-such-host.invalid:8081"])
def test_a_registry_that_is_away_is_an_outage(url: str) -> None:
    with pytest.raises(RegistryUnavailableError) as caught:
        client_of(url).schema(1)
    assert caught.value.passes and url in str(caught.value)


@pytest.mark.parametrize(
    "host", ["a" * 64 + ".example", "xn--", "a..b", "-", "_", "%", "[::1]", "[fe80::1%25lo]", "256.1.1.1", "1"]
)
def test_any_host_gives_an_error_in_words(host: str) -> None:
    try:
        spec = RegistrySpec.model_validate({"url": f"http://{host}:1", "request_timeout_seconds": 1})
    except ValueError:
        return
    with pytest.raises((RegistryUnavailableError, RegistryAnswerError)):
        RegistryClient("company", spec).schema(1)


def test_an_address_that_does_not_speak_tls_is_told() -> None:
    with answering(lambda path: said(SCHEMA)) as server:
        url = server.url.replace("http:", "https:")
        with pytest.raises(RegistryAnswerError, match="it does not speak TLS"):
            client_of(url).schema(1)


def test_references_are_resolved_also_of_deleted_subjects() -> None:
    subjects = {
        "/schemas/ids/17": {"schema": "a", "references": [{"name": "b", "subject": "s/b", "version": 2}, ref("c")]},
        "/subjects/s%2Fb/versions/2": {"schema": "b", "references": [ref("c")]},
        "/subjects/c/versions/1": {"schema": "c"},
    }
    with answering(lambda path: said(subjects[path])) as server:
        found = client_of(server.url).schema(17)
        c = Reference("c", SchemaText("avro", "c"))
        assert found == SchemaText("avro", "a", (Reference("b", SchemaText("avro", "b", (c,))), c))
        assert [request.path for request in server.seen] == [
            "/schemas/ids/17",
            "/subjects/s%2Fb/versions/2?deleted=true",
            "/subjects/c/versions/1?deleted=true",
        ]


def ref(subject: str, version: int = 1) -> dict[str, object]:
    return {"name": subject, "subject": subject, "version": version}


def chain(path: str) -> Said:
    at = int(path.split("/")[2])
    return said({"schema": "x", "references": [ref(str(at + 1))]})


def doubled(path: str) -> Said:
    at = int(path.split("/")[2])
    again = {**ref(str(at + 1)), "name": "again"}
    return said({"schema": "x", "references": [ref(str(at + 1)), again]} if at < 15 else {"schema": "x"})


def wide(path: str) -> Said:
    return said({"schema": "x", "references": [ref(f"{number}") for number in range(20_000)] if "ids" in path else []})


def cycle(path: str) -> Said:
    return said({"schema": "x", "references": [ref("a" if "subjects/b" in path else "b")]})


def missing(path: str) -> Said:
    return said({"schema": "x", "references": [ref("gone")]}) if "ids" in path else NOT_FOUND


IMPORTS = {
    "without an end": (lambda path: chain(path.replace("/schemas/ids/", "/x/")), "more than"),
    "themselves": (cycle, "imports itself: 'b' (subject 'b', version 1)"),
    "by very many ways": (lambda path: doubled(path.replace("/schemas/ids/1", "/x/0")), "by more than 2,000 ways"),
    "very many others": (wide, "imports more than 20 schemas"),
    "what is gone": (missing, "imports 'gone', which the registry does not have"),
}


@pytest.mark.parametrize("what", IMPORTS)
def test_schemas_that_import(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "MOST_FETCHED", 20)
    say, words = IMPORTS[what]
    with answering(say) as server:
        with pytest.raises(UnusableSchemaError) as caught:
            client_of(server.url).schema(1)
        assert words in str(caught.value)
        assert len(server.seen) < 50


RULES = {
    "encryption": ({"domainRules": [{"name": "pii", "type": "ENCRYPT", "mode": "WRITEREAD"}]}, "an encryption rule (pii)"),
    "payload encryption": ({"encodingRules": [{"name": "all", "type": "ENCRYPT_PAYLOAD"}]}, "an encryption rule (all)"),
    "migration": ({"migrationRules": [{"name": "rename", "type": "JSONATA", "mode": "UPGRADE"}]}, "migration rules (rename)"),
    "data": ({"domainRules": [{"type": "CEL"}]}, "data rules (CEL)"),
}


@pytest.mark.parametrize("what", RULES)
def test_a_schema_with_rules_is_refused_by_name(what: str) -> None:
    rules, words = RULES[what]
    with pytest.raises(UnusableSchemaError) as caught:
        schema_by(said({**SCHEMA, "ruleSet": rules}))
    assert words in str(caught.value) and "Land the topic as bytes" in str(caught.value)


def test_rules_that_are_switched_off_and_other_metadata_change_nothing() -> None:
    off = {"domainRules": [{"name": "pii", "type": "ENCRYPT", "disabled": True}], "migrationRules": []}
    assert schema_by(said({**SCHEMA, "ruleSet": off, "metadata": {"tags": {"a": ["PII"]}}})) == SchemaText("avro", '"string"')
    assert schema_by(said({**SCHEMA, "ruleSet": None, "references": None})) == SchemaText("avro", '"string"')


def test_versions_and_the_compatibility_mode_are_read() -> None:
    answers = {
        "/subjects/orders-value/versions": [3, 1],
        "/subjects/orders-value/versions/latest": {"subject": "orders-value", "version": 3, "id": 17, **SCHEMA},
        "/subjects/orders-value/versions/1": {"subject": "orders-value", "version": 1, "id": 4, **SCHEMA},
        "/config": {"compatibilityLevel": "BACKWARD"},
    }
    with answering(lambda path: said(answers[path]) if path in answers else NOT_FOUND) as server:
        client = client_of(server.url)
        assert client.versions("orders-value") == [1, 3]
        latest, first = client.version("orders-value"), client.version("orders-value", 1)
        assert latest is not None and (latest.version, latest.id) == (3, 17)
        assert first is not None and (first.version, first.id, first.schema.text) == (1, 4, '"string"')
        assert client.compatibility("orders-value") == "BACKWARD"
