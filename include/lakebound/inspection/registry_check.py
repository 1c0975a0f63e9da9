"""Whether the schema registries of registries.yaml can be asked: they answer, and accept the login."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lakebound.errors import InvalidRegistriesError, LakeboundError, MissingSecretError
from lakebound.registry.client import RegistryClient
from lakebound.settings import load_yaml_access
from lakebound.spec.registries_file import read_registries
from lakebound.spec.registry import RegistrySpec
from lakebound.spec.secrets import forbidden_secret


def registry_problems(path: Path, chosen: Collection[str] | None, *, asks: bool) -> list[str]:
    """Return what is wrong with the file, and with its registries.

    Args:
        path: ``registries.yaml``.
        chosen: Names of registries; None: all.
        asks: Whether the registries are asked; else only the file is read, and whether it may name its secrets.
    """
    try:
        known = read_registries(path)
    except InvalidRegistriesError as exc:
        return list(exc.problems)
    looked_at = {name: spec for name, spec in known.items() if chosen is None or name in chosen}
    if not looked_at:
        return []
    with ThreadPoolExecutor(len(looked_at)) as pool:
        found = pool.map(lambda named: refused_secret(*named) or (asks and _problem(*named)), looked_at.items())
        return [f"{path}: {problem}" for problem in found if problem]


def refused_secret(name: str, spec: RegistrySpec) -> str | None:
    """Return which secret of a registry may not be read on this machine, and why; None: each may."""
    access = load_yaml_access()
    refused = ((field, forbidden_secret(ref, access)) for field, ref in spec.secrets.items())
    return next((f"registries.{name}.{field}: {why}" for field, why in refused if why), None)


def _problem(name: str, spec: RegistrySpec) -> str | None:
    """Return why a registry cannot be asked, after the name of its field; None where it can."""
    try:
        client = RegistryClient(name, spec)
        try:
            client.types()
        finally:
            client.close()
    except MissingSecretError as exc:
        return str(exc)  # It begins with the name of the field.
    except LakeboundError as exc:
        return f"registries.{name}: {exc}"
    return None
