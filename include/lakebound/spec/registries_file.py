"""Reads ``registries.yaml``, and says of each mistake in which file, line and field it is.

Whoever runs Lakebound writes the file; a pipeline names one of its schema registries. So a pipeline's author cannot send the
login of one to an address of their own.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, field_validator

from lakebound.errors import InvalidRegistriesError, UnknownRegistryError
from lakebound.frozen import Frozen
from lakebound.settings import Settings
from lakebound.spec.operators_files import checked_names, operators_path, read_operators_file
from lakebound.spec.registry import RegistrySpec

FILE = "registries.yaml"


class RegistriesSpec(Frozen):
    """The file."""

    registries: dict[str, RegistrySpec] = Field(description="Schema registries by the names that pipelines write.")

    @field_validator("registries")
    @classmethod
    def _names(cls, registries: dict[str, RegistrySpec]) -> dict[str, RegistrySpec]:
        return checked_names(registries)


def registries_file(settings: Settings) -> Path:
    """Return where the file is, or would be: beside the folder of pipelines."""
    return operators_path(FILE, settings)


def load_registries(settings: Settings) -> dict[str, RegistrySpec]:
    """Return the registries by name; none where there is no file.

    Raises:
        InvalidRegistriesError: The file is wrong.
    """
    return read_registries(registries_file(settings))


def read_registries(path: Path) -> dict[str, RegistrySpec]:
    """Return the registries of a file by name; none where there is no file.

    Raises:
        InvalidRegistriesError: The file is wrong.
    """
    found = read_operators_file(path, RegistriesSpec, "registries", InvalidRegistriesError)
    return {} if found is None else found.registries


def find_registry(name: str, settings: Settings) -> RegistrySpec:
    """Return one registry.

    Raises:
        InvalidRegistriesError: The file is wrong.
        UnknownRegistryError: No registry has the name.
    """
    known = load_registries(settings)
    if name not in known:
        raise UnknownRegistryError(name, sorted(known), registries_file(settings))
    return known[name]
