"""Reads ``warehouses.yaml``, and says of each mistake in which file, line and field it is.

Whoever runs Lakebound writes the file; a pipeline names one of its warehouses. So a pipeline's author can neither write to
another bucket nor send the keys of one to an address of their own.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from pydantic import Field, ValidationError, field_validator

from lakebound.errors import InvalidWarehousesError, UnknownWarehouseError
from lakebound.frozen import Frozen
from lakebound.settings import Settings
from lakebound.spec.load import problem_line
from lakebound.spec.mistakes import describe
from lakebound.spec.pipeline import NAME
from lakebound.spec.warehouse import DEFAULT_WAREHOUSE, WarehouseSpec, local_warehouse
from lakebound.spec.yaml_source import Keys, Mistake, UnreadableYamlError, read_yaml

FILE = "warehouses.yaml"
_SECRETS = frozenset({"access_key_id", "secret_access_key", "session_token", "password", "token", "client_secret"})
_NOT_A_SECRET = "must say where the secret is stored: {env: NAME} or {file: PATH}; never write the secret itself in this file"


class WarehousesSpec(Frozen):
    """The file."""

    warehouses: dict[str, WarehouseSpec] = Field(
        description="Warehouses by name; 'default' is that of pipelines that name none."
    )

    @field_validator("warehouses")
    @classmethod
    def _names(cls, warehouses: dict[str, WarehouseSpec]) -> dict[str, WarehouseSpec]:
        for name in warehouses:
            if not re.fullmatch(NAME, name):
                raise ValueError(f"{name!r} must be lower-case letters, digits and _, beginning with a letter")
        return warehouses


def warehouses_file(settings: Settings) -> Path:
    """Return where the file is, or would be: beside the folder of pipelines."""
    return settings.pipelines.parent / FILE


def load_warehouses(settings: Settings) -> dict[str, WarehouseSpec]:
    """Return the warehouses by name; the embedded one is ``default`` where the file names no other so.

    Raises:
        InvalidWarehousesError: The file is wrong.
    """
    embedded = {DEFAULT_WAREHOUSE: local_warehouse(settings.warehouse)}
    path = warehouses_file(settings)
    if not path.exists() and not path.is_symlink():
        return embedded
    try:
        source = read_yaml(path)
    except UnreadableYamlError as exc:
        raise InvalidWarehousesError([problem_line(path, exc.mistake)]) from None
    if not isinstance(source.root, dict):
        raise InvalidWarehousesError([problem_line(path, Mistake(1, "must be keys and values, the first of them warehouses:"))])
    mistakes = [*source.mistakes]
    found: WarehousesSpec | None = None
    try:
        found = WarehousesSpec.model_validate(source.root)
    except ValidationError as exc:
        mistakes += describe(exc, source, WarehousesSpec)
    if found is None or mistakes:
        told = {problem_line(path, _without_secrets(one)): one.line for one in mistakes}
        raise InvalidWarehousesError(sorted(told, key=lambda line: told[line]))
    return {**embedded, **found.warehouses}


def find_warehouse(name: str, settings: Settings) -> WarehouseSpec:
    """Return one warehouse.

    Raises:
        InvalidWarehousesError: The file is wrong.
        UnknownWarehouseError: No warehouse has the name.
    """
    known = load_warehouses(settings)
    if name not in known:
        raise UnknownWarehouseError(name, sorted(known), warehouses_file(settings))
    return known[name]


def _without_secrets(mistake: Mistake) -> Mistake:
    """Return the mistake without what stands at a secret's field or below it: a key might be the secret itself."""
    keys: Keys = ()
    for key in mistake.keys:
        keys = (*keys, key)
        if key in _SECRETS:
            return replace(mistake, what=_NOT_A_SECRET, keys=keys)
    return mistake
