"""Whether the schema registries of registries.yaml can be asked: they answer, and accept the login."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

from lakebound.errors import InvalidRegistriesError, LakeboundError
from lakebound.registry.client import RegistryClient
from lakebound.settings import Settings
from lakebound.spec.registries_file import load_registries, registries_file
from lakebound.spec.registry import RegistrySpec


def registry_problems(settings: Settings, chosen: Collection[str] | None, *, asks: bool) -> list[str]:
    """Return what is wrong with the file, and with its registries.

    Args:
        settings: Of this machine.
        chosen: Names of registries; None: all.
        asks: Whether the registries are asked; else only the file is read.
    """
    try:
        known = load_registries(settings)
    except InvalidRegistriesError as exc:
        return list(exc.problems)
    asked = {name: spec for name, spec in known.items() if asks and (chosen is None or name in chosen)}
    if not asked:
        return []
    with ThreadPoolExecutor(len(asked)) as pool:
        found = pool.map(lambda named: _problem(*named), asked.items())
        return [f"{registries_file(settings)}: registries.{problem}" for problem in found if problem]


def _problem(name: str, spec: RegistrySpec) -> str:
    try:
        client = RegistryClient(name, spec)
        try:
            client.types()
        finally:
            client.close()
    except LakeboundError as exc:
        return f"{name}: {exc}"
    return ""
