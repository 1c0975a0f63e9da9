"""The connection to Kafka: which ways to log in there are, which client settings may be made, and why not others."""

from __future__ import annotations

import pytest
from tests.support.streams.pipeline_files import RIGHT, settings, write

from lakebound.errors import InvalidSpecError
from lakebound.settings import Settings
from lakebound.spec.client_settings import ClientSettings, refused_setting
from lakebound.spec.connection import ConnectionSpec
from lakebound.spec.load import load_file

__all__ = ["settings"]
SECRET = "hunter2-very-secret"
TOKENS = (
    "mechanism: OAUTHBEARER, token_url: https://idp.example.com/token, client_id: lander, "
    "client_secret: {env: LAKEBOUND_SECRET_KAFKA}"
)
CERTIFICATE = "tls: true\n  tls_certificate_file: /etc/lakebound/lander.pem\n  tls_key_file: lander.key\n  "


def file(connection: str) -> str:
    """Return a pipeline's YAML with further keys under connection."""
    return RIGHT.replace("value:\n", f"  {connection}\nvalue:\n", 1)


def problems_of(settings: Settings, text: str) -> list[str]:
    with pytest.raises(InvalidSpecError) as caught:
        load_file(write(settings, text), settings)
    return [problem.removeprefix(f"{settings.pipelines}/orders.yaml:") for problem in caught.value.problems]


def connection_of(settings: Settings, text: str) -> ConnectionSpec:
    return load_file(write(settings, text), settings).connection


def test_each_way_to_log_in_is_read(settings: Settings) -> None:
    tokens = connection_of(settings, file(f"sasl: {{{TOKENS}, scope: kafka, extensions: {{logicalCluster: lkc-1}}}}"))
    assert tokens.sasl is not None and tokens.sasl.extensions == {"logicalCluster": "lkc-1"}
    assert tokens.secret_variables == ("LAKEBOUND_SECRET_KAFKA",)
    certificate = connection_of(settings, file(CERTIFICATE + "tls_key_password: {env: LAKEBOUND_SECRET_KEY}"))
    assert certificate.security_protocol == "SSL"
    assert certificate.secret_variables == ("LAKEBOUND_SECRET_KEY",)
    assert ConnectionSpec.model_validate_json(tokens.model_dump_json(by_alias=True)) == tokens


@pytest.mark.parametrize(
    ("connection", "problem"),
    [
        (
            "sasl: {mechanism: AWS_MSK_IAM}",
            "5: connection.sasl.mechanism: is not supported: AWS_MSK_IAM needs Amazon's own code in every "
            "client; log in to MSK "
            "with SCRAM-SHA-512 (mechanism, username, password) or with a client certificate "
            "(tls_certificate_file, tls_key_file)",
        ),
        (
            "sasl: {mechanism: GSSAPI}",
            "5: connection.sasl.mechanism: is not supported: GSSAPI (Kerberos) needs tickets on every machine, "
            "and libraries that the clients do not include; log in with SCRAM-SHA-512, OAUTHBEARER or a client certificate "
            "(tls_certificate_file, tls_key_file)",
        ),
        (
            "sasl: {mechanism: SCRAM-SHA-512, username: lander}",
            "5: connection.sasl: password is missing: SCRAM-SHA-512 needs username, password",
        ),
        (
            "sasl: {mechanism: OAUTHBEARER, client_id: lander}",
            "5: connection.sasl: token_url and client_secret are missing: OAUTHBEARER needs token_url, "
            "client_id, client_secret",
        ),
        (
            f"sasl: {{{TOKENS}, username: lander}}",
            "5: connection.sasl: username: not for the mechanism OAUTHBEARER, which takes token_url, client_id, client_secret",
        ),
        (
            f"sasl: {{{TOKENS.replace('//', f'//lander:{SECRET}@')}}}",
            "5: connection.sasl.token_url: must be an address such as https://idp.example.com/token, without user and password",
        ),
        (
            f"sasl: {{{TOKENS}, extensions: {{auth: x}}}}",
            "5: connection.sasl.extensions: a name must consist of letters, and not be auth; a value must "
            "be printable, without blanks and commas",
        ),
        (
            f"sasl: {{{TOKENS.replace('{env: LAKEBOUND_SECRET_KAFKA}', SECRET)}}}",
            "5: connection.sasl.client_secret: must say where the secret is stored: {env: NAME} or {file: "
            "PATH}; never write the "
            "password itself in this file",
        ),
        (
            CERTIFICATE + f"tls_key_password: {SECRET}",
            "8: connection.tls_key_password: must say where the secret is stored: {env: NAME} or {file: PATH}; never write the "
            "password itself in this file",
        ),
        (CERTIFICATE.replace("true", "false"), "3: connection: tls_certificate_file and tls_key_file need tls: true"),
        ("tls_certificate_file: /etc/lakebound/lander.pem", "3: connection: tls_certificate_file needs tls_key_file, too"),
        (
            "tls_key_password: {env: LAKEBOUND_SECRET_KEY}",
            "3: connection: tls_key_password needs tls_certificate_file and tls_key_file",
        ),
        (
            CERTIFICATE.replace("lander.key", "/home/else/lander.key"),
            "7: connection.tls_key_file: this file is not in the folder of secrets, /run/secrets; put it there, or let whoever "
            "runs Lakebound set LAKEBOUND_SECRETS_FOLDER",
        ),
        (
            "client: {isolation.level: read_uncommitted}",
            "5: connection.client.isolation.level: cannot be set: Lakebound reads with read_committed; otherwise records of "
            "aborted transactions would land",
        ),
        (
            "client: {request.timeout: 20000}",
            "5: connection.client.request.timeout: unknown key; did you mean 'request.timeout.ms'?",
        ),
        (
            "client: {request.timeout.ms: 5}",
            "5: connection.client.request.timeout.ms: must be greater than or equal to 10000",
        ),
        (
            "client: {reconnect.backoff.ms: 500, reconnect.backoff.max.ms: 200}",
            "5: connection.client: reconnect.backoff.max.ms must not be less than reconnect.backoff.ms",
        ),
    ],
)
def test_what_cannot_work_is_told_with_its_field(settings: Settings, connection: str, problem: str) -> None:
    found = problems_of(settings, file(connection))
    assert found == [problem] and SECRET not in problem


def test_an_unknown_setting_of_the_clients_is_answered_with_those_that_are_known(settings: Settings) -> None:
    (problem,) = problems_of(settings, file("client: {zzz: 5}"))
    assert "unknown key; known here: broker.address.family, client.dns.lookup, client.id, " in problem


@pytest.mark.parametrize(
    "name",
    [
        "auto.offset.reset",
        "bootstrap.servers",
        "enable.auto.commit",
        "group.id",
        "interceptor.classes",
        "isolation.level",
        "key.deserializer",
        "max.poll.records",
        "partition.assignment.strategy",
        "sasl.jaas.config",
        "sasl.login.callback.handler.class",
        "security.protocol",
        "session.timeout.ms",
        "ssl.keystore.location",
        "value.deserializer",
    ],
)
def test_settings_that_would_break_exactly_once_or_hide_a_secret_have_a_reason(name: str) -> None:
    assert refused_setting(name)


def test_no_setting_that_may_be_made_has_a_reason_against_it() -> None:
    names = [str(field.alias) for field in ClientSettings.model_fields.values()]
    assert names and not [name for name in names if refused_setting(name)]


def test_settings_are_texts_by_kafkas_names() -> None:
    chosen = ClientSettings.model_validate({"socket.keepalive.enable": True, "request.timeout.ms": 20_000, "client.id": "lake"})
    assert chosen.chosen() == {"client.id": "lake", "request.timeout.ms": "20000", "socket.keepalive.enable": "true"}
