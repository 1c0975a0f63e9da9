"""A real broker as companies have it: its own certificate authority, mTLS, SCRAM and OAUTHBEARER over TLS, and ACLs.

Its plaintext listener is for the tests themselves: who comes that way may do everything.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from lakebound.control.ports import LOOPBACK, free_port
from lakebound.local.broker import Broker
from lakebound.local.broker_config import BrokerPorts
from tests.support.kafka.certificates import CertificateAuthority
from tests.support.kafka.token_server import AUDIENCE, ISSUER

_SECONDS = 30.0
_SCRAM_ITERATIONS = 4096
_SECURITY = "org.apache.kafka.common.security"

Grant = tuple[ResourceType, str, AclOperation]
"""What a principal may do: on which kind of resource, of which name (with * at its end: of all that begin so), and what."""


class SecuredBroker(Broker):
    """The embedded broker with further listeners, each for one way to log in."""

    def __init__(self, folder: Path, jars: Path, authority: CertificateAuthority, jwks: Path) -> None:
        """Describe the broker; nothing is started yet.

        Args:
            folder: Where its data, configuration and logs are kept.
            jars: The folder of checked jars.
            authority: Signs its certificate, and those of clients that it lets in.
            jwks: The public keys of the token server.
        """
        super().__init__(folder, jars)
        self._authority = authority
        self._jwks = jwks
        self._ports = {name: free_port() for name in ("MTLS", "LOGIN", "OLD")}
        self.advertised_old_port = free_port()
        self.jvm_options = (f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={jwks.as_uri()}",)

    @property
    def mtls_servers(self) -> str:
        """Where a client's certificate is wanted."""
        return f"{LOOPBACK}:{self._ports['MTLS']}"

    @property
    def login_servers(self) -> str:
        """Where a password (SCRAM) or a token is wanted, over TLS."""
        return f"{LOOPBACK}:{self._ports['LOGIN']}"

    @property
    def misnamed_servers(self) -> str:
        """The same by a name that is not in the broker's certificate."""
        return f"localhost:{self._ports['LOGIN']}"

    @property
    def old_port(self) -> int:
        """Where a proxy listens in on; clients are told ``advertised_old_port``."""
        return self._ports["OLD"]

    def configuration(self, ports: BrokerPorts, sasl_host: str = LOOPBACK) -> str:
        """Return the embedded broker's own configuration with the listeners added."""
        lines = super().configuration(ports, sasl_host).splitlines()
        settings = dict(line.split("=", 1) for line in lines)
        own = ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in self._ports.items())
        told = own.replace(f":{self.old_port}", f":{self.advertised_old_port}")
        settings["listeners"] += f",{own}"
        settings["advertised.listeners"] += f",{told}"
        settings["listener.security.protocol.map"] += ",MTLS:SSL,LOGIN:SASL_SSL,OLD:PLAINTEXT"
        settings |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._keystore()),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._authority.file),
            "listener.name.mtls.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": r"RULE:^CN=(.*)$/$1/,DEFAULT",
            "listener.name.login.sasl.enabled.mechanisms": "SCRAM-SHA-512,OAUTHBEARER",
            "listener.name.login.scram-sha-512.sasl.jaas.config": f"{_SECURITY}.scram.ScramLoginModule required;",
            "listener.name.login.oauthbearer.sasl.jaas.config": f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule required;",
            "listener.name.login.oauthbearer.sasl.server.callback.handler.class": (
                f"{_SECURITY}.oauthbearer.OAuthBearerValidatorCallbackHandler"
            ),
            "sasl.oauthbearer.jwks.endpoint.url": self._jwks.as_uri(),
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
        return "".join(f"{name}={value}\n" for name, value in settings.items())

    def add_user(self, name: str, password: str) -> None:
        """Add a user who logs in by SCRAM, or change the password."""
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, _SCRAM_ITERATIONS)
        wanted = UserScramCredentialUpsertion(name, info, password.encode())
        self._done(self.admin.alter_user_scram_credentials([wanted]))

    def allow(self, user: str, *grants: Grant) -> None:
        """Let a user do this, and nothing else."""
        admin, everyone = self.admin, "*"
        anything = AclBindingFilter(
            ResourceType.ANY, None, ResourcePatternType.ANY, f"User:{user}", None, AclOperation.ANY, AclPermissionType.ANY
        )
        self._done(dict(enumerate(admin.delete_acls([anything]).values())))
        bindings = [
            AclBinding(
                kind,
                name.removesuffix("*"),
                ResourcePatternType.PREFIXED if name.endswith("*") else ResourcePatternType.LITERAL,
                f"User:{user}",
                everyone,
                operation,
                AclPermissionType.ALLOW,
            )
            for kind, name, operation in grants
        ]
        if bindings:
            self._done(admin.create_acls(bindings))

    @cached_property
    def admin(self) -> AdminClient:
        """A client that may do everything."""
        return AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})

    def _keystore(self) -> Path:
        signed = self._authority.sign("broker", hosts=(LOOPBACK,))
        store = self.folder / "broker.pem"
        store.write_bytes(signed.key.read_bytes() + signed.certificate.read_bytes())
        return store

    @staticmethod
    def _done(futures: dict[object, object]) -> None:
        for future in futures.values():
            future.result(_SECONDS)  # type: ignore[attr-defined]
