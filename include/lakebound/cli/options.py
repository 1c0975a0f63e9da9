"""Commands with many options take them as one frozen value."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, TypeVar, get_type_hints

Options = TypeVar("Options")


def with_options(command: Callable[[Options], None], options: type[Options]) -> Callable[..., None]:
    """Return a command whose parameters are the fields of a dataclass, for Typer.

    Args:
        command: What is done with the options; its docstring is the command's help.
        options: The dataclass; its fields are annotated as parameters of a command are.
    """
    hints = get_type_hints(options, include_extras=True)

    def run(**given: Any) -> None:
        command(options(**given))

    run.__doc__, run.__name__, run.__module__ = command.__doc__, command.__name__, command.__module__
    run.__annotations__ = {**hints, "return": None}
    parameters = [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if one.default is MISSING else one.default,
            annotation=hints[one.name],
        )
        for one in fields(options)  # type: ignore[arg-type]
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run
