"""Whether, and where to, an application tells its lineage: OpenLineage's own environment variables. Sends nothing.

Only the application that lands gets them, not maintenance, validation or a trial: the key is nobody else's business.
Source: https://openlineage.io/docs/client/python/configuration
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from lakebound.errors import SettingError

API_KEY = "OPENLINEAGE_API_KEY"
DEFAULT_NAMESPACE = "default"
"""Of jobs; OpenLineage's own default."""

_SHOWN = ("OPENLINEAGE_CONFIG", "OPENLINEAGE_DISABLED", "OPENLINEAGE_ENDPOINT", "OPENLINEAGE_NAMESPACE")
_URL = "OPENLINEAGE_URL"


@dataclass(frozen=True)
class LineageSettings:
    """Where lineage goes to.

    Attributes:
        url: Address of an OpenLineage server; empty where ``config`` says it, or where nothing is sent.
        endpoint: Path below the address; empty: OpenLineage's default.
        api_key: Bearer token for the server; empty: none.
        config: ``openlineage.yml``; its transport is taken before the address.
        namespace: Of the jobs.
    """

    url: str = ""
    endpoint: str = ""
    api_key: str = field(default="", repr=False)
    config: Path | None = None
    namespace: str = DEFAULT_NAMESPACE

    @property
    def is_on(self) -> bool:
        """Whether anything is sent."""
        return bool(self.url or self.config)


def load_lineage_settings(environ: Mapping[str, str] | None = None) -> LineageSettings:
    """Return what the environment (default: this process's) says; nothing is sent unless it names a server or a file.

    Raises:
        SettingError: The address is none, or holds a login; or there is no such file.
    """
    env = os.environ if environ is None else environ
    namespace = env.get("OPENLINEAGE_NAMESPACE") or DEFAULT_NAMESPACE
    if env.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
        return LineageSettings(namespace=namespace)
    file = env.get("OPENLINEAGE_CONFIG") or ""
    if file and not Path(file).is_file():
        raise SettingError("OPENLINEAGE_CONFIG", f"there is no file {file}")
    return LineageSettings(
        url=_address(env.get(_URL) or ""),
        endpoint=env.get("OPENLINEAGE_ENDPOINT") or "",
        api_key=env.get(API_KEY) or "",
        config=Path(file) if file else None,
        namespace=namespace,
    )


def lineage_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables that an application on this machine gets, the key included."""
    env = os.environ if environ is None else environ
    return {name: env[name] for name in (*_SHOWN, _URL, API_KEY) if env.get(name)}


def shown_lineage_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables that travel to a cluster, where pages show them: no key, and no address with a login."""
    env = os.environ if environ is None else environ
    names = _SHOWN if "@" in (env.get(_URL) or "") else (*_SHOWN, _URL)
    return {name: env[name] for name in names if env.get(name)}


def _address(url: str) -> str:
    if not url:
        return ""
    if "@" in url:
        raise SettingError(_URL, f"the login belongs in {API_KEY}, or in the file that OPENLINEAGE_CONFIG names")
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_address = False
    if not is_address:
        raise SettingError(_URL, "it is not an address such as https://marquez.example.com")
    return url
