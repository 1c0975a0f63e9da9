"""Every way to log in, against a real broker with its own certificate authority and ACLs; and what is said when one fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation, ResourceType
from confluent_kafka.cimpl import NewTopic
from tests.support.kafka.certificates import CertificateAuthority
from tests.support.kafka.journal import Journal
from tests.support.kafka.old_broker import OldBroker
from tests.support.kafka.producing import JournalingProducer, send_events
from tests.support.kafka.secured_broker import Grant, SecuredBroker
from tests.support.kafka.token_server import TokenServer
from tests.support.streams.applications import RunningApplication, applications
from tests.support.streams.exposure import command_lines, files_with, ui_pages
from tests.support.streams.long_form import LONG_FORM
from tests.support.streams.pipelines import Pipeline, assert_exactly_once, make_pipeline
from tests.support.waiting import HANGS_SECONDS

from lakebound.errors import (
    BrokerUnavailableError,
    KafkaForbiddenError,
    KafkaLoginError,
    LakeboundError,
    TlsFileError,
    TopicWithoutIdError,
)
from lakebound.inspection.doctor.pipeline.kafka_look import look_at_kafka, look_at_waiting
from lakebound.inspection.proof.readable_offsets import read_offsets
from lakebound.landing.brokers import look_at_brokers
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.kafka_settings import client_config
from lakebound.landing.sampling import read_sample
from lakebound.landing.topic_check import look_at_topics as check_topics
from lakebound.landing.topic_creation import create_topics
from lakebound.local.produce import Feed
from lakebound.local.produce import produce as send_demo_records
from lakebound.spec.connection import ConnectionSpec
from lakebound_spark.batch.direct import MOST_BAD

pytestmark = pytest.mark.integration

PASSWORD = "Xk4-password-that-stands-nowhere-\"'\\$;"
CLIENT_SECRET = "Qz7-client-secret-that-stands-nowhere"
KEY_PASSWORD = "Vt2-key-password-that-stands-nowhere"
LOGINS = ("certificate", "password", "token")
LANDING = LOGINS if LONG_FORM else ("token",)
"""Each is an application, which reads by both engines. In the short form the driver's clients try every login, and Spark's own
reader a token."""
LIMITED = ("password", "the user password") if LONG_FORM else ("token", "the client token")
"""Whose right is taken away, and how an error calls them."""
SHORT_SECONDS = 3.0
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
SETTINGS = {"client.id": "lake", "request.timeout.ms": 20_000, "metadata.max.age.ms": 60_000, "socket.keepalive.enable": True}


def least(topic: str) -> list[Grant]:
    """Return what a pipeline needs, and no more: the table in docs/how-to/kafka-security.md."""
    return [(TOPIC, topic, AclOperation.READ), (GROUP, "lakebound-*", AclOperation.DESCRIBE)]


@dataclass(frozen=True)
class Company:
    """A broker, a token server, who signs their certificates, and who does not."""

    broker: SecuredBroker
    tokens: TokenServer
    authority: CertificateAuthority
    stranger: CertificateAuthority
    secrets: Path

    def connection(self, login: str, **changes: Any) -> dict[str, Any]:
        """Return the YAML of one way to log in; ``changes`` replace keys of it, or of its ``sasl``."""
        body: dict[str, Any] = {"tls": True, "tls_ca_file": str(self.authority.file), "client": SETTINGS}
        if login == "certificate":
            files = {"tls_certificate_file": str(self.secrets / "certificate.pem"), "tls_key_file": "certificate.key"}
            body |= {"bootstrap_servers": self.broker.mtls_servers, **files}
        elif login == "password":
            sasl = {"mechanism": "SCRAM-SHA-512", "username": "password", "password": {"env": "LAKEBOUND_SECRET_PASSWORD"}}
            body |= {"bootstrap_servers": self.broker.login_servers, "sasl": sasl}
        else:
            sasl = {
                "mechanism": "OAUTHBEARER",
                "token_url": self.tokens.url,
                "token_ca_file": str(self.authority.file),
                "client_id": "token",
                "client_secret": {"file": "client_secret"},
                "scope": "kafka",
                "extensions": {"logicalCluster": "lkc-1"},
            }
            body |= {"bootstrap_servers": self.broker.login_servers, "sasl": sasl}
        for name, value in changes.items():
            place = body["sasl"] if name in body.get("sasl", {}) or name in ("mechanism",) else body
            place[name] = value
        return body

    def spec(self, login: str, **changes: Any) -> ConnectionSpec:
        """Return the same as the clients take it."""
        return ConnectionSpec.model_validate(self.connection(login, **changes))

    def topic(self, name: str, partitions: int = 2) -> str:
        """Make a topic."""
        for made in self.broker.admin.create_topics([NewTopic(name, partitions, 1)]).values():
            made.result(HANGS_SECONDS)
        return name


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory, jars: Path) -> Iterator[Company]:
    folder = tmp_path_factory.mktemp("company")
    authority, stranger = CertificateAuthority(folder / "authority"), CertificateAuthority(folder / "stranger", "Stranger")
    secrets = authority.file.parent
    # As OpenSSL writes a key, which Kafka's Java client does not read by itself.
    authority.sign("certificate", is_openssl=True)
    authority.sign("locked", password=KEY_PASSWORD)
    authority.sign("expired", days=-1)
    stranger.sign("unknown")
    for file in ("unknown.pem", "unknown.key"):
        (secrets / file).write_bytes((stranger.file.parent / file).read_bytes())
    (secrets / "client_secret").write_text(f"{CLIENT_SECRET}\n")
    tokens = TokenServer(folder, {"token": CLIENT_SECRET}, authority.sign("tokens", hosts=("127.0.0.1",)))
    broker = SecuredBroker(folder / "broker", jars, authority, tokens.jwks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAKEBOUND_SECRETS_FOLDER", str(secrets))
        patch.setenv("LAKEBOUND_CERTIFICATES", str(stranger.file.parent))
        patch.setenv("LAKEBOUND_SECRET_PASSWORD", PASSWORD)
        patch.setenv("LAKEBOUND_SECRET_KEY", KEY_PASSWORD)
        patch.setenv("LAKEBOUND_SECRET_WRONG", "wrong")
        try:
            broker.start()
            broker.add_user("password", PASSWORD)
            yield Company(broker, tokens, authority, stranger, secrets)
        finally:
            broker.stop()
            tokens.end()


@pytest.mark.parametrize("login", LOGINS)
def test_each_login_works_in_everything_that_asks_kafka(company: Company, login: str) -> None:
    topic = company.topic(f"asked-{login}")
    company.broker.allow(
        login, *least(topic), (TOPIC, topic, AclOperation.DESCRIBE_CONFIGS), (TOPIC, topic, AclOperation.WRITE)
    )
    connection, journal = company.spec(login), Journal()
    send_events(JournalingProducer(company.broker.bootstrap_servers, journal), topic, range(10), partition=0)
    send_demo_records(client_config(connection), [Feed("orders", 0, topic, count=5)], 30.0, say=lambda line: None)
    facts = KafkaFacts(connection)
    assert sum(facts.topics([topic])[topic].latest.values()) == 15
    assert facts.retention([topic])[topic][0]
    assert len(read_sample(connection, (topic,), 15, newest=False, reader="sample").records) == 15
    assert len(read_offsets(connection, {(topic, 0): (0, 10)})[topic, 0]) == 10
    spec = make_pipeline(company.secrets, "", topic, connection=company.connection(login)).spec
    assert look_at_brokers([spec], 10)[0].brokers == 1
    look = look_at_kafka(spec)
    assert look.problem is None, look
    waiting = look_at_waiting(spec, look, {topic: {0: 0}}, time.time())
    assert waiting.unread == () and waiting.waiting[topic, 0].timestamp_ms is not None


def test_an_encrypted_private_key_is_opened_with_its_password(company: Company) -> None:
    topic = company.topic("locked")
    company.broker.allow("locked", *least(topic))
    connection = company.spec(
        "certificate",
        tls_certificate_file=str(company.secrets / "locked.pem"),
        tls_key_file="locked.key",
        tls_key_password={"env": "LAKEBOUND_SECRET_KEY"},
    )
    assert KafkaFacts(connection).topic_ids([topic])


WRONG: dict[str, tuple[str, Callable[[Company], dict[str, Any]], type[LakeboundError], str]] = {
    "password": (
        "password",
        lambda company: {"password": {"env": "LAKEBOUND_SECRET_WRONG"}},
        KafkaLoginError,
        "check sasl.username and sasl.password under connection",
    ),
    "mechanism": ("password", lambda company: {"mechanism": "PLAIN"}, KafkaLoginError, "check sasl.mechanism under connection"),
    "client's secret": (
        "token",
        lambda company: {"client_secret": {"env": "LAKEBOUND_SECRET_WRONG"}},
        KafkaLoginError,
        "check sasl.client_id, sasl.client_secret and sasl.scope under connection",
    ),
    "token server's authority": (
        "token",
        lambda company: {"token_ca_file": str(company.stranger.file)},
        KafkaLoginError,
        "check sasl.token_ca_file and sasl.token_url under connection",
    ),
    "token server away": (
        "token",
        lambda company: {"token_url": "https://127.0.0.1:1/token"},
        BrokerUnavailableError,
        "the token server at https://127.0.0.1:1/token gives no token",
    ),
    "broker's authority": (
        "password",
        lambda company: {"tls_ca_file": str(company.stranger.file)},
        KafkaLoginError,
        "check tls_ca_file and the host names in bootstrap_servers under connection",
    ),
    "broker's name": (
        "password",
        lambda company: {"bootstrap_servers": company.broker.misnamed_servers, "client": {"broker.address.family": "v4"}},
        KafkaLoginError,
        "is for another host name; check tls_ca_file and the host names in bootstrap_servers under connection",
    ),
    "no certificate": (
        "certificate",
        lambda company: {"tls_certificate_file": None, "tls_key_file": None},
        KafkaLoginError,
        "the broker wants a client's certificate",
    ),
    "certificate of another authority": (
        "certificate",
        lambda company: {"tls_certificate_file": str(company.secrets / "unknown.pem"), "tls_key_file": "unknown.key"},
        KafkaLoginError,
        "check tls_certificate_file and tls_key_file under connection",
    ),
    "certificate that has expired": (
        "certificate",
        lambda company: {"tls_certificate_file": str(company.secrets / "expired.pem"), "tls_key_file": "expired.key"},
        TlsFileError,
        "connection.tls_certificate_file: the certificate in",
    ),
    "key of another certificate": (
        "certificate",
        lambda company: {"tls_key_file": "expired.key"},
        TlsFileError,
        "connection.tls_key_file: is not the private key of the first certificate in",
    ),
    "password of the key": (
        "certificate",
        lambda company: {"tls_key_file": "locked.key", "tls_key_password": {"env": "LAKEBOUND_SECRET_WRONG"}},
        TlsFileError,
        "connection.tls_key_password: is not the password of the private key in tls_key_file",
    ),
}


def test_what_is_wrong_with_a_login_is_told_with_its_field_and_without_a_secret(company: Company) -> None:
    topic = company.topic("wrong")

    def told(name: str) -> LakeboundError:
        login, changes, _, _ = WRONG[name]
        try:
            KafkaFacts(company.spec(login, **changes(company)), timeout_seconds=SHORT_SECONDS).topic_ids([topic])
        except LakeboundError as exc:
            return exc
        raise AssertionError(f"{name}: nothing was wrong")

    with ThreadPoolExecutor(len(WRONG)) as pool:  # most of them wait for an answer that never comes
        found = dict(zip(WRONG, pool.map(told, WRONG), strict=True))
    for name, (_, _, kind, sentence) in WRONG.items():
        assert type(found[name]) is kind and sentence in str(found[name]), f"{name}: {found[name]!r}"
    said = "\n".join(map(str, found.values()))
    assert not [secret for secret in (PASSWORD, CLIENT_SECRET, KEY_PASSWORD) if secret in said]


def test_a_token_server_that_cannot_answer_is_an_outage_and_a_password_that_was_changed_is_read_anew(company: Company) -> None:
    topic = company.topic("outage")
    for login in ("token", "password"):
        company.broker.allow(login, *least(topic))
    company.tokens.status = 503
    try:
        # Its client asks the token server again for a while before it says why there is no answer.
        with pytest.raises(BrokerUnavailableError):
            KafkaFacts(company.spec("token"), timeout_seconds=SHORT_SECONDS).topic_ids([topic])
    finally:
        company.tokens.status = None
    rotated = company.secrets / "rotated"
    rotated.write_text("of yesterday")
    facts = KafkaFacts(company.spec("password", password={"file": "rotated"}), timeout_seconds=SHORT_SECONDS)
    with pytest.raises(KafkaLoginError):
        facts.topic_ids([topic])
    rotated.write_text(PASSWORD)
    assert facts.topic_ids([topic])


def test_the_name_in_a_brokers_certificate_is_not_compared_where_the_pipeline_says_so(company: Company) -> None:
    topic = company.topic("misnamed")
    company.broker.allow("password", *least(topic))
    unchecked = {"broker.address.family": "v4", "ssl.endpoint.identification.algorithm": "none"}
    connection = company.spec("password", bootstrap_servers=company.broker.misnamed_servers, client=unchecked)
    assert KafkaFacts(connection).topic_ids([topic])


def test_what_the_user_may_not_do_is_told_as_the_acl_that_is_missing(company: Company) -> None:
    topic = company.topic("forbidden")
    connection = company.spec("password")
    spec = make_pipeline(company.secrets, "", topic, connection=company.connection("password")).spec
    company.broker.allow("password")
    with pytest.raises(KafkaForbiddenError, match="does not allow the user password: DESCRIBE on topic forbidden; grant"):
        KafkaFacts(connection).topic_ids([topic])
    assert look_at_kafka(spec).problem == "refused"
    with pytest.raises(KafkaForbiddenError, match="CREATE on topic more"):
        create_topics(connection, ["more"])
    assert look_at_brokers([spec], 10)[0].problem is None, "who is logged in may always see which brokers there are"
    company.broker.allow("password", (TOPIC, topic, AclOperation.DESCRIBE))
    look = look_at_kafka(spec)
    assert look.problem is None
    assert "DESCRIBE_CONFIGS on topic forbidden" in look_at_waiting(spec, look, {}, time.time()).unread[0]
    with pytest.raises(KafkaForbiddenError, match="READ on topic forbidden"):
        read_offsets(connection, {(topic, 0): (0, 10)})
    send_events(JournalingProducer(company.broker.bootstrap_servers, Journal()), topic, range(10), partition=0)
    company.broker.allow("password", (TOPIC, topic, AclOperation.READ))
    with pytest.raises(KafkaForbiddenError, match="DESCRIBE on group lakebound-sample-direct"):
        for _ in range(50):  # the records may come before Kafka's answer about the group; then they are a sample
            assert len(read_sample(connection, (topic,), 10, newest=False, reader="sample").records) == 10
    assert len(read_offsets(connection, {(topic, 0): (0, 10)})[topic, 0]) == 10, "a proof needs no group"


def test_a_broker_that_gives_topics_no_ids_is_refused(company: Company, tmp_path: Path) -> None:
    topic = company.topic("without-id")
    old = OldBroker(company.broker.advertised_old_port, company.broker.old_port)
    try:
        connection = {"bootstrap_servers": old.servers}
        with pytest.raises(TopicWithoutIdError, match=r"gives topic 'without-id' no id.*Kafka 2\.8"):
            KafkaFacts(ConnectionSpec.model_validate(connection)).topics([topic])
        pipeline = make_pipeline(tmp_path, old.servers, topic)
        problems, _ = check_topics(pipeline.spec, pipeline.places)
        assert "gives topic 'without-id' no id" in problems[0]
        facts = KafkaFacts(ConnectionSpec.model_validate(connection), needs_topic_ids=False)
        assert facts.topics([topic])[topic].latest == {0: 0, 1: 0}, "it is no broker at all"
    finally:
        old.end()


@dataclass
class Landing:
    """One login's pipeline, with an application that lands."""

    pipeline: Pipeline
    journal: Journal
    producer: JournalingProducer
    topic: str
    application: RunningApplication | None = None

    @property
    def running(self) -> RunningApplication:
        assert self.application is not None
        return self.application

    def send(self, numbers: range) -> None:
        """Send events, and wait until they have landed."""
        send_events(self.producer, self.topic, numbers)
        self.running.wait_landed(self.journal.ends())

    def is_direct(self) -> bool:
        """Whether the driver read the last batch."""
        progress = self.running.progress
        return progress is not None and "direct_write" in progress.durations_ms


def test_each_login_lands_with_the_least_acls_in_both_engines_and_no_secret_shows(company: Company, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    landings = {login: _landing(company, tmp_path / login, login) for login in LANDING}
    wrong = make_pipeline(
        tmp_path / "wrong",
        "",
        landings[LIMITED[0]].topic,
        connection=company.connection("password", password={"env": "LAKEBOUND_SECRET_WRONG"}),
        limits={"lease_ttl_seconds": 20, "outage_seconds": 1},
    )
    with applications() as starter:
        # Shortly, the driver's clients say it: test_what_is_wrong_with_a_login_is_told_with_its_field_and_without_a_secret.
        refused = starter.start(wrong) if LONG_FORM else None
        for landing in landings.values():
            landing.application = starter.start(landing.pipeline, environ={"SPARK_LOCAL_DIRS": str(scratch)})
        for landing in landings.values():
            landing.running.wait_landed(landing.journal.ends())
            landing.running.wait_for(lambda landing=landing: _lands_directly(landing), 60, "a batch that the driver reads")
            _let_spark_read(landing, company.broker.bootstrap_servers)
        _without_a_right(company, landings[LIMITED[0]])
        lines = [line for landing in landings.values() for line in command_lines(landing.running)]
        pages = [page for landing in landings.values() for page in ui_pages(landing.running)]
        assert all(landing.running.stop().verdict == "stopped" for landing in landings.values())
        if refused is not None:
            outcome = refused.ended()
            assert (outcome.verdict, outcome.error_class, outcome.is_outage) == ("refused", "KafkaLoginError", False), outcome
            assert "check sasl.username and sasl.password under connection" in outcome.reason
    for landing in landings.values():
        assert_exactly_once(landing.pipeline, landing.journal)
    key = client_config(company.spec("certificate"))["ssl.key.pem"].splitlines()[1]
    for secret in (PASSWORD[:20], CLIENT_SECRET, key):
        assert not [line for line in lines if secret in line]
        assert not [address for address, page in pages if secret in page]
        assert not files_with(secret, *(tmp_path / login for login in LANDING), scratch)
    assert len(lines) >= 2 * len(LANDING) and any("kafka" in page.lower() for _, page in pages), "this looks at nothing at all"


def _landing(company: Company, folder: Path, login: str) -> Landing:
    topic, journal = company.topic(f"landed-{login}"), Journal()
    company.broker.allow(login, *least(topic))
    producer = JournalingProducer(company.broker.bootstrap_servers, journal)
    send_events(producer, topic, range(100))
    pipeline = make_pipeline(folder, "", topic, lane="direct", formats=("delta",), connection=company.connection(login))
    return Landing(pipeline, journal, producer, topic)


def _lands_directly(landing: Landing) -> bool:
    """Send some more, and return whether the driver has read them."""
    landing.send(range(1000, 1020))
    return landing.is_direct()


def _let_spark_read(landing: Landing, servers: str) -> None:
    """Send more bad records than the driver sorts out, in one batch, and wait until they are in quarantine."""
    # A transaction in one partition is there all at once; otherwise several batches might share them.
    at_once = JournalingProducer(servers, landing.journal, transactional_id=landing.topic)
    with at_once.transaction():
        for _ in range(MOST_BAD + 100):
            at_once.send(landing.topic, b'{"id": 1, ', partition=0)
    landing.running.wait_landed(landing.journal.ends())
    assert not landing.is_direct()
    landing.send(range(2000, 2020))


def _without_a_right(company: Company, landing: Landing) -> None:
    """Take READ away and give it back: the error names it, and the same application goes on."""
    login, who = LIMITED
    company.broker.allow(login, (TOPIC, landing.topic, AclOperation.DESCRIBE))
    send_events(landing.producer, landing.topic, range(3000, 3020))
    wanted = f"does not allow {who}: READ on topic {landing.topic}"

    def is_told() -> bool:
        progress = landing.running.progress
        return progress is not None and wanted in (progress.last_failure or "")

    landing.running.wait_for(is_told, 60, "the ACL that is missing")
    company.broker.allow(login, *least(landing.topic))
    landing.running.wait_landed(landing.journal.ends())
