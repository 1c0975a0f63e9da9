"""What errors of Kafka's clients mean: refused logins and rights are told with what to check, all else is an outage."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError

from lakebound.errors import BrokerUnavailableError, KafkaForbiddenError, KafkaLoginError, LakeboundError
from lakebound.landing.kafka_errors import refusal_in, told_error
from lakebound.spec.connection import ConnectionSpec
from lakebound.tables.outages import is_outage

SCRAM = {"mechanism": "SCRAM-SHA-512", "username": "ada", "password": {"env": "LAKEBOUND_SECRET_ADA"}}
TOKENS = {
    "mechanism": "OAUTHBEARER",
    "token_url": "https://idp/token",
    "client_id": "ada",
    "client_secret": {"env": "LAKEBOUND_SECRET_ADA"},
}
TIMED_OUT = KafkaError(KafkaError._TIMED_OUT, "Failed while waiting for controller: Local: Timed out")


def connection(sasl: Any = None) -> ConnectionSpec:
    return ConnectionSpec.model_validate({"bootstrap_servers": "kafka:9093", "tls": True, "sasl": sasl})


def told(code: int, text: str, sasl: Any = None) -> LakeboundError:
    return told_error(connection(sasl), TIMED_OUT, KafkaError(code, text), "orders")


def test_a_wrong_password_is_a_login_that_is_refused_however_long_it_took() -> None:
    text = "sasl_ssl://kafka:9093/1: SASL authentication error: Authentication failed (after {}ms in state AUTH_REQ{})"
    errors = [
        told(KafkaError._AUTHENTICATION, text.format(328, ""), SCRAM),
        told(KafkaError._AUTHENTICATION, text.format(5, ", 3 identical error(s) suppressed"), SCRAM),
    ]
    assert {str(error) for error in errors} == {
        "no login to Kafka at kafka:9093: sasl_ssl://kafka:9093/1: SASL authentication error: Authentication failed; check "
        "sasl.username and sasl.password under connection"
    }
    assert isinstance(errors[0], KafkaLoginError) and errors[0].is_refusal and not is_outage(errors[0])


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Could not connect to server", BrokerUnavailableError),
        ("The requested URL returned error: 503", BrokerUnavailableError),
        ('Failed to retrieve OIDC token from "https://idp/token": invalid_client (401)', KafkaLoginError),
        ("SSL certificate OpenSSL verify result: unable to get local issuer certificate (20)", KafkaLoginError),
    ],
)
def test_a_token_server_that_is_away_is_an_outage_and_one_that_refuses_is_not(said: str, kind: type[LakeboundError]) -> None:
    error = told(KafkaError._AUTHENTICATION, f"Failed to acquire SASL OAUTHBEARER token: {said}", TOKENS)
    assert type(error) is kind and said in str(error)


def test_without_a_word_of_the_client_it_is_an_outage() -> None:
    error = told_error(connection(), TIMED_OUT, None, "orders")
    assert isinstance(error, BrokerUnavailableError) and "Timed out" in str(error)
    away = told(KafkaError._TRANSPORT, "kafka:9093: Connect failed: Connection refused (after 0ms in state CONNECT)")
    assert isinstance(away, BrokerUnavailableError) and str(away).count("Connection refused; check") == 1


def test_errors_of_the_java_client_are_found_in_what_spark_says() -> None:

    def found(sasl: Any, text: str) -> LakeboundError | None:
        return refusal_in(connection(sasl), RuntimeError(f"Job aborted: org.apache.kafka.common.errors.{text}"))

    topic = found(SCRAM, "TopicAuthorizationException: Not authorized to access topics: [orders]")
    assert isinstance(topic, KafkaForbiddenError) and "the user ada: READ on topic orders" in str(topic)
    group = found(TOKENS, "GroupAuthorizationException: Not authorized to access group: g-1")
    assert isinstance(group, KafkaForbiddenError) and "the client ada: READ on group g-1" in str(group)
    login = found(SCRAM, "SaslAuthenticationException: Authentication failed\n\tat x")
    assert isinstance(login, KafkaLoginError) and str(login).count("Authentication failed; check") == 1
    assert found(None, "TimeoutException: timed out") is None
