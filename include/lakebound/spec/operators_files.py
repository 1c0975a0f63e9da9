"""Files of whoever runs Lakebound, beside the folder of pipelines, in which things stand by a name that a pipeline may name."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from lakebound.errors import OperatorsFileError
from lakebound.settings import Settings
from lakebound.spec.table import NAME
from lakebound.spec.yaml_model import read_model

_M = TypeVar("_M", bound=BaseModel)
_V = TypeVar("_V")


def operators_path(name: str, settings: Settings) -> Path:
    """Return where the file of a name is, or would be."""
    return settings.pipelines.parent / name


def read_operators_file(
    path: Path, model: type[_M], keys: str, refusal: Callable[[list[str]], OperatorsFileError]
) -> _M | None:
    """Return what a file says; None where there is no file.

    Args:
        path: The file.
        model: What it should be.
        keys: The keys that it may have, for the message of a file that has none.
        refusal: Makes the error of a wrong file from its mistakes.

    Raises:
        OperatorsFileError: The file is wrong; it is what ``refusal`` makes.
    """
    if not path.exists() and not path.is_symlink():
        return None
    found, problems = read_model(path, model, keys)
    if found is None:
        raise refusal(problems)
    return found


def checked_names(named: dict[str, _V]) -> dict[str, _V]:
    """Return what stands by names, if each name is one that a pipeline may write.

    Raises:
        ValueError: A name is none.
    """
    for name in named:
        if not re.fullmatch(NAME, name):
            raise ValueError(f"{name!r} must be lower-case letters, digits and _, beginning with a letter")
    return named
