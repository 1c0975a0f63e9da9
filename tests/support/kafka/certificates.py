"""A certificate authority of the tests' own, and what it signs: PEM files, made in milliseconds (elliptic curves)."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Signed:
    """The files of one certificate and its private key."""

    certificate: Path
    key: Path


class CertificateAuthority:
    """Signs certificates; its own is in ``file``."""

    def __init__(self, folder: Path, name: str = "Lakebound tests") -> None:
        """Make a new authority whose files are in ``folder``."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.datetime.now(datetime.UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(self._name)
            .issuer_name(self._name)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - DAY)
            .not_valid_after(now + DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.file = folder / "ca.pem"
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def sign(
        self, name: str, *, password: str | None = None, days: int = 1, hosts: tuple[str, ...] = (), is_openssl: bool = False
    ) -> Signed:
        """Return the files of a new certificate.

        Args:
            name: Its common name.
            password: Encrypts the private key.
            days: For how long it is valid; negative: since when it is not any more.
            hosts: Names and addresses of a server.
            is_openssl: Writes the key as OpenSSL's own tools do, which Kafka's Java client cannot read.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 10 * DAY)
            .not_valid_after(now + days * DAY)
            .add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
            )
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
        signed = Signed(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        signed.certificate.write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password:
            encryption = serialization.BestAvailableEncryption(password.encode())
        written = serialization.PrivateFormat.TraditionalOpenSSL if is_openssl else serialization.PrivateFormat.PKCS8
        signed.key.touch(mode=0o600)
        signed.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, written, encryption))
        return signed


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
