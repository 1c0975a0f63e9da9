"""What errors of Kafka's clients mean: a login or a right that Kafka refuses, or an outage. Pure.

librdkafka tells a request that waits for a connection only that its time is over. Why there is no connection stands in what the
client said beside, as an error of its own: both are looked at.
"""

from __future__ import annotations

import re

from confluent_kafka import KafkaError

from lakebound.errors import BrokerUnavailableError, KafkaForbiddenError, KafkaLoginError, LakeboundError, MissingTopicError
from lakebound.spec.connection import ConnectionSpec

_UNKNOWN_TOPIC = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)
_DURATIONS = re.compile(r" \(after \d+ms in state \w+(, \d+ identical error\(s\) suppressed)?\)")
_MOST_CHARACTERS = 400
_TOKEN = "Failed to acquire SASL OAUTHBEARER token: "
_REFUSED_TOKEN = re.compile(r"\b(400|401|403)\b|invalid_client|invalid_grant|invalid_scope|unauthorized", re.IGNORECASE)
_OWN_CERTIFICATE = re.compile(
    r"alert (bad certificate|certificate|unknown ca|handshake failure|access denied)|certificate required"
)
_JAVA_FORBIDDEN = (
    (re.compile(r"TopicAuthorizationException: Not authorized to access topics: \[([^\]]*)\]"), "READ on topic"),
    (re.compile(r"GroupAuthorizationException: Not authorized to access group: (\S+)"), "READ on group"),
)
_JAVA_LOGIN = re.compile(r"(?:Sasl|Ssl)AuthenticationException: ([^\n]*)")


def told_error(
    connection: ConnectionSpec, error: KafkaError, trouble: KafkaError | None, topic: str, operation: str = "DESCRIBE"
) -> LakeboundError:
    """Return the error of Lakebound's that a failed request is.

    Args:
        connection: Whose client it was.
        error: What the request ended with.
        trouble: What the client said of its connections meanwhile; None where it said nothing.
        topic: What was asked for.
        operation: What a user must be allowed to do with the topic for that.
    """
    servers = connection.bootstrap_servers
    if error.code() in _UNKNOWN_TOPIC:
        return MissingTopicError(topic, servers)
    if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        return KafkaForbiddenError(servers, who(connection), f"{operation} on topic {topic}")
    if error.code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED:
        return KafkaForbiddenError(servers, who(connection), "this request to the cluster")
    return connection_error(connection, trouble if trouble is not None else error, said=error.str())


def connection_error(connection: ConnectionSpec, trouble: KafkaError, *, said: str = "") -> LakeboundError:
    """Return what it means that a client does not get connected: a login that Kafka refuses, or an outage.

    Args:
        connection: Whose client it was.
        trouble: What the client said of its connection.
        said: What the request ended with, where that is something else.
    """
    # A token server that refuses may answer with a whole page.
    servers, text = connection.bootstrap_servers, _DURATIONS.sub("", trouble.str())[:_MOST_CHARACTERS]
    if reason := _login_problem(connection, trouble.code(), text):
        return KafkaLoginError(servers, *reason)
    if _TOKEN in text:
        url = connection.sasl.token_url if connection.sasl else None
        return BrokerUnavailableError(servers, f"the token server at {url} gives no token: {text.partition(_TOKEN)[2]}")
    return BrokerUnavailableError(servers, f"{said}: {text}" if said and said != text else text)


def refusal_in(connection: ConnectionSpec, error: BaseException) -> LakeboundError | None:
    """Return what Kafka refuses, where an error of Spark's quotes an error of Kafka's Java client that says so."""
    text, servers = str(error), connection.bootstrap_servers
    for pattern, operation in _JAVA_FORBIDDEN:
        if found := pattern.search(text):
            return KafkaForbiddenError(servers, who(connection), f"{operation} {found[1]}")
    if found := _JAVA_LOGIN.search(text):
        return KafkaLoginError(servers, found[1].strip(), _login_fields(connection))
    return None


def who(connection: ConnectionSpec) -> str:
    """Return as whom a connection's clients log in."""
    sasl = connection.sasl
    if sasl is not None:
        return f"the user {sasl.username}" if sasl.username else f"the client {sasl.client_id}"
    return (
        f"the certificate in {connection.tls_certificate_file}"
        if connection.tls_certificate_file
        else "clients without a login"
    )


def _login_problem(connection: ConnectionSpec, code: int, text: str) -> tuple[str, str] | None:
    """Return (what Kafka or the token server says, which fields to check); None where it is no refused login."""
    if _TOKEN in text:
        said = text.partition(_TOKEN)[2]
        if "certificate" in said:
            return f"the token server's certificate is not accepted: {said}", "sasl.token_ca_file and sasl.token_url"
        if _REFUSED_TOKEN.search(said):
            return f"the token server refuses it: {said}", "sasl.client_id, sasl.client_secret and sasl.scope"
        return None
    if "certificate verify failed" in text:
        said = "the broker's certificate is not signed by an authority that is known here, or is for another host name"
        return said, "tls_ca_file and the host names in bootstrap_servers"
    if _OWN_CERTIFICATE.search(text):
        said = (
            "the broker does not accept the client's certificate"
            if connection.tls_certificate_file
            else ("the broker wants a client's certificate")
        )
        return f"{said} ({text})", "tls_certificate_file and tls_key_file"
    if code == KafkaError._AUTHENTICATION:
        return text, "sasl.mechanism" if "mechanism handshake failed" in text else _login_fields(connection)
    return None


def _login_fields(connection: ConnectionSpec) -> str:
    sasl = connection.sasl
    if sasl is None:
        return "tls_certificate_file and tls_ca_file" if connection.tls else "tls"
    return (
        "sasl.username and sasl.password"
        if sasl.username
        else "sasl.client_id, sasl.scope and what the broker expects of a token"
    )
