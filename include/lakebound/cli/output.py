"""How commands speak: results on stdout, progress and errors on stderr, a sentence instead of a traceback."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from lakebound.control.private_files import refusal
from lakebound.errors import LakeboundError
from lakebound.first_line import first_line
from lakebound.plain_text import visible_text

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

# Rich cuts cells at 80 columns where it cannot know the width, as in a pipe.
PIPE_COLUMNS = 200


class OneSentence(TyperGroup):
    """The group of all commands: an error is one clear sentence and exit code 1, unless ``--debug`` is given."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except Exception as exc:
            # Errors of usage and ends on purpose carry their exit code, and are told by the group itself.
            if ctx.params.get("debug") or isinstance(exc, typer.Abort | BrokenPipeError) or hasattr(exc, "exit_code"):
                raise
            say(_sentence(exc))
            raise typer.Exit(1) from exc


def wants_debug(context: typer.Context) -> bool:
    """Whether the command was called with ``--debug``."""
    return bool(context.find_root().params.get("debug"))


def say(text: str) -> None:
    """Print progress, or an error."""
    typer.echo(printable(text), err=True)


def show(text: str) -> None:
    """Print a line of a result for a person. It may quote records, so it goes through `printable`."""
    typer.echo(printable(text))


_KEPT = "\u200c\u200d" + "".join(map(chr, (0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)))
"""Joiners, which Persian words and many emoji have, and other spaces than " ", such as that of Japanese."""


def printable(text: str, *, lines: bool = True) -> str:
    """Return text that does nothing to a terminal but to be shown: every other character is escaped.

    Args:
        text: It may quote records, which may hold anything.
        lines: Keep ends of lines and tabs; else they are escaped, too.
    """
    return visible_text(text, keep=_KEPT + "\n\t" if lines else _KEPT)


def print_json(body: Any) -> None:
    """Print a result as JSON. Numbers that JSON does not have, such as NaN, become text."""
    typer.echo(json.dumps(_finite(body), indent=2, default=str, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_finite(key): _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def print_rows(headers: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """Print a result as a table; the columns named in ``right`` are numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for header in headers:
        table.add_column(Text(printable(header)), justify="right" if header in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    Console(width=None if sys.stdout.isatty() else PIPE_COLUMNS).print(table)


def duration(seconds: float | None) -> str:
    """Return a duration as a person says it; ``-`` where there is none."""
    if seconds is None:
        return "-"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = int(seconds // 60)
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min" if minutes < 48 * 60 else f"{minutes // 1440} d"


def number(value: int | None) -> str:
    """Return a count with separators; ``-`` where there is none."""
    return "-" if value is None else f"{value:,}"


def moment(milliseconds: int) -> str:
    """Return a time of the epoch in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")


def _sentence(exc: Exception) -> str:
    if isinstance(exc, LakeboundError):
        return f"lakebound: {exc}"
    if isinstance(exc, PermissionError) and (refused := refusal(exc)):
        return f"lakebound: {refused}"
    first = first_line(exc)
    if isinstance(exc, ConnectionError | PermissionError):
        # It takes 30 ms, and is needed here alone.
        from lakebound.storage.objects import ObjectStoreRefusedError, ObjectStoreUnavailableError

        if isinstance(exc, ObjectStoreRefusedError | ObjectStoreUnavailableError):
            where = "the keys and the endpoint in warehouses.yaml, and the address in LAKEBOUND_STATE if it is the state's"
            return f"lakebound: {first}; check {where}"
    return f"lakebound: unexpected {type(exc).__name__}: {first}; `lakebound --debug ...` shows where"
