"""To which servers a secret may be sent: whoever runs Lakebound binds it, or it belongs to one pipeline. Pure.

An author who may name a secret could otherwise send it to a server of their own.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from lakebound.frozen import Frozen
from lakebound.spec.connection import SecretRef

CHANNELS, WAREHOUSES, REGISTRIES = "channels", "warehouses", "registries"
"""Folders in the folder of secrets for what no pipeline may use: of alert channels, of warehouses, of schema registries."""
OPERATORS_FOLDERS = (CHANNELS, WAREHOUSES, REGISTRIES)
_SERVER = re.compile(r"(\*\.)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?:\d{1,5}|\[[0-9a-fA-F:.]+\]:\d{1,5}")
_CONNECTION = "AIRFLOW_CONN_"
_KAFKA_PORT = 9092


def _server(text: str) -> str:
    if not _SERVER.fullmatch(text):
        raise ValueError(f"{text!r} is not a server such as kafka-1.example.com:9092 or *.example.com:9092")
    return text.lower()


Server = Annotated[str, AfterValidator(_server)]


class SecretBindings(Frozen):
    """The servers to which each secret may be sent, as host:port; ``*.example.com:9092`` stands for all hosts of a domain."""

    files: Mapping[str, tuple[Server, ...]] = Field(
        default_factory=dict, description="Files, by their path in the folder of secrets."
    )
    variables: Mapping[str, tuple[Server, ...]] = Field(default_factory=dict, description="Environment variables, by name.")

    def servers_of(self, ref: SecretRef, folder: Path) -> tuple[str, ...]:
        """Return the servers that a secret is bound to."""
        if ref.env is not None:
            return tuple(self.variables.get(ref.env, ()))
        return tuple(self.files.get(file_name(ref, folder) or "", ()))


@dataclass(frozen=True)
class SecretUse:
    """A secret, and to whom it is sent.

    Attributes:
        ref: Where it is.
        servers: The servers that get it, or a proof of it, as host:port.
    """

    ref: SecretRef
    servers: tuple[str, ...]


def binding_refusal(use: SecretUse, pipeline: str | None, bindings: SecretBindings | None, folder: Path) -> str | None:
    """Return why a pipeline may not send a secret to these servers, and what to do; None where it may.

    Args:
        use: The secret, and the servers.
        pipeline: Who asks; None: it was asked when the pipeline was loaded, and only the servers are compared again.
        bindings: What whoever runs Lakebound says; None: nothing yet, and then only servers of this machine may get a secret.
        folder: Where the files of secrets are.
    """
    owner = None
    if use.ref.file is not None:
        name = file_name(use.ref, folder)
        owner = (name or "").partition("/")[0] if "/" in (name or "") else None
        if name is None or owner in OPERATORS_FOLDERS or name.rpartition("/")[2].startswith(_CONNECTION):
            return (
                "this file is not for pipelines: it holds a secret of an alert channel, of a warehouse, of a registry, or none"
            )
    if owner and owner == (pipeline or owner):
        return None
    bound = () if bindings is None else bindings.servers_of(use.ref, folder)
    loose = [server for server in use.servers if not any(_matches(one, server) for one in bound)]
    if bindings is None:
        loose = [server for server in loose if not is_of_this_machine(server)]
    if not loose and use.servers:
        return None
    said = f"whoever runs Lakebound can bind it in installation.yaml (`lakebound bind-secrets` prints the lines; see {_PAGE})"
    if owner:
        return f"this file belongs to the pipeline {owner!r}; {said}"
    own = f", or put it into the folder {pipeline or 'PIPELINE'}/ of the folder of secrets" if use.ref.file else ""
    return f"this secret is not bound to {', '.join(loose) or 'any server'}; {said}{own}"


_PAGE = "docs/security.md#secrets-are-bound-to-servers"


def file_name(ref: SecretRef, folder: Path) -> str | None:
    """Return the path of a file in the folder of secrets, as bindings name it; links are not followed."""
    path = Path(os.path.normpath(folder / (ref.file or "")))
    if not path.is_relative_to(folder):
        # The folder may have two names: /var/run/secrets is /run/secrets.
        folder, path = folder.resolve(), path.parent.resolve() / path.name
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) and path != folder else None


def servers_of_brokers(bootstrap_servers: str) -> tuple[str, ...]:
    """Return the servers in Kafka's list of brokers."""
    named = (one.strip().rpartition("://")[2] for one in bootstrap_servers.split(","))
    return tuple(one if re.search(r":\d+$", one) else f"{one}:{_KAFKA_PORT}" for one in named if one)


def server_of_address(url: str) -> str:
    """Return the server of an address of the web, with the port of its protocol where it names none."""
    parts = urlsplit(url)
    return server_of(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))


def server_of(host: str, port: int) -> str:
    """Return host and port as one text."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_of_this_machine(server: str) -> bool:
    """Return whether a server is the machine itself, and no other machine can be it."""
    host = server.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def any_matches(allowed: Iterable[str], server: str) -> bool:
    """Return whether a server is one of those that are allowed."""
    return any(_matches(one, server) for one in allowed)


def _matches(allowed: str, server: str) -> bool:
    found = server.lower()
    return found == allowed or (
        allowed.startswith("*.") and re.fullmatch(r"[a-z0-9.-]+" + re.escape(allowed[1:]), found) is not None
    )
