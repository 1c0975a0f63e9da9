"""The commands that pages print, and what is wrong with them: of ``lakebound`` and of ``make``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import typer.main

from lakebound.cli import app
from lakebound.cli.control import Action
from lakebound.operations.recovery.actions import PLANNERS

REPOSITORY = Path(__file__).parents[2]
_ENDS = {"|", "||", "&", "&&", ";", "(", ")", ">", ">>", "<", "<<"}
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_REDIRECTED = re.compile(r"\d?>>?")


def in_shell(text: str) -> Iterator[list[str]]:
    """Yield the commands of ``lakebound`` and ``make`` in a piece of shell, split into words."""
    for line in text.replace("\\\n", " ").splitlines():
        for words in _segments(line):
            rest = list(words)
            while rest and (_ASSIGNMENT.match(rest[0]) or rest[0] in ("sudo", "$", "exec", "time")):
                rest = rest[3:] if rest[:2] == ["sudo", "-u"] else rest[1:]
            if rest and rest[0].rpartition("/")[2] in ("lakebound", "make"):
                yield [rest[0].rpartition("/")[2], *rest[1:]]


def wrong(words: list[str], *, is_whole: bool = True) -> Iterator[str]:
    """Yield what is wrong with a command.

    Args:
        words: The command, split.
        is_whole: Whether somebody is to type it as it stands; a sentence that names it may leave arguments and values out.
    """
    if words[0] == "make":
        yield from _wrong_targets(words)
        return
    known = _all_commands()
    options_of_all = {name for option in known.params for name in option.opts} | {"--help", "-h"}
    rest = list(words[1:])
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option not in options_of_all:
            yield f"lakebound has no option {option}"
    if rest:
        yield from _wrong_command(rest, known.commands, is_whole=is_whole)


@cache
def _all_commands() -> typer.main.TyperGroup:
    found = typer.main.get_command(app)
    assert isinstance(found, typer.main.TyperGroup)
    return found


def _segments(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    try:
        for word in lexer:
            if word in _ENDS:
                yield words
                words = []
            else:
                words.append(word)
    except ValueError:
        # A line of a here-document, or of another language.
        words = words if words[:1] in (["lakebound"], ["make"]) else []
    yield words


def _wrong_targets(words: list[str]) -> Iterator[str]:
    targets = re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    asked = (word for word in words[1:] if "=" not in word and not word.startswith("-"))
    yield from (f"make has no target {word!r}" for word in asked if word not in targets)


def _wrong_command(words: list[str], known: dict[str, typer.main.TyperCommand], *, is_whole: bool) -> Iterator[str]:
    name, rest, positional = words[0], list(words[1:]), 0
    command = known.get(name)
    if command is None:
        yield f"there is no command {name!r}"
        return
    options = {opt: option for option in command.params for opt in (*option.opts, *option.secondary_opts)}
    while rest:
        word, has_value, value = rest.pop(0).partition("=")
        if not word.startswith("-"):
            positional += 1
        elif word in ("--help", "-h"):
            return
        elif word not in options:
            yield f"lakebound {name} has no option {word}"
        elif not options[word].is_flag:
            value = value if has_value else rest.pop(0) if rest else None
            yield from _wrong_value(f"lakebound {name} {word}", value, is_whole=is_whole)
    if name == "control" and not set(words[2:3]) <= {action.value for action in Action}:
        yield f"lakebound control knows no {words[2]!r}"
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    needed = sum(argument.required for argument in arguments) if is_whole else 0
    most = 99 if any(argument.nargs == -1 for argument in arguments) else len(arguments)
    if not needed <= positional <= most:
        yield f"lakebound {name} takes {needed} to {most} arguments, not {positional}"


def _wrong_value(option: str, value: str | None, *, is_whole: bool) -> Iterator[str]:
    if (value is None and is_whole) or (value is not None and value.startswith("-")):
        yield f"{option} needs a value"
    elif option.endswith(" --action") and value not in (None, *PLANNERS, "auto"):
        yield f"there is no action {value!r}"
