"""A YAML file's values with the line of each, read safely. Knows nothing of pipelines."""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.reader import ReaderError
from yaml.resolver import Resolver

MOST_VALUES = 20_000
"""Of a file, each value counted wherever an alias repeats it: nine aliases of nine of nine … would fill the memory."""
MOST_BYTES = 1024 * 1024
"""Of a file. All files are read in each round of the watch, so one that takes long would delay what is said of the others."""
MOST_LEVELS = 100
"""Of values inside of each other. How deep Python itself goes depends on who else runs in the process."""
MOST_NUMBER = 2**63 - 1
_LONGEST_NUMBER = 100
_UNSHOWABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that move a terminal's cursor, turn the direction of text or are no text at all. ``"\\e"`` writes one in YAML."""
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")

Keys = tuple[str | int, ...]
"""Where a value is: keys and positions from the root."""


@dataclass(frozen=True)
class Mistake:
    """Something wrong at a line, counted from 1."""

    line: int
    what: str
    keys: Keys = ()


class UnreadableYamlError(ValueError):
    """The file is not YAML that can be used.

    Attributes:
        mistake: The first thing that is wrong.
    """

    def __init__(self, mistake: Mistake) -> None:
        self.mistake = mistake
        super().__init__(f"line {mistake.line}: {mistake.what}")


@dataclass(frozen=True)
class YamlSource:
    """What a file says.

    Attributes:
        root: Its value, of plain Python types.
        lines: The line of each key and list item.
        mistakes: Keys that are given twice; the last one is in ``root``.
    """

    root: Any
    lines: dict[Keys, int]
    mistakes: tuple[Mistake, ...]

    def line_of(self, keys: Keys) -> int:
        """Return the line of the value at ``keys``, or of the nearest thing around it that exists."""
        while keys and keys not in self.lines:
            keys = keys[:-1]
        return self.lines.get(keys, 1)


def read_yaml(path: Path) -> YamlSource:
    """Return the file's values and lines.

    Raises:
        UnreadableYamlError: It cannot be read, or is not YAML.
    """
    try:
        text = _bounded(path).decode("utf-8")
    except OSError as exc:
        raise UnreadableYamlError(Mistake(1, f"cannot be read: {exc.strerror}")) from None
    except UnicodeDecodeError as exc:
        line = exc.object[: exc.start].count(b"\n") + 1
        raise UnreadableYamlError(Mistake(line, "is not UTF-8 text")) from None
    try:
        return _read(text)
    except yaml.YAMLError as exc:
        raise UnreadableYamlError(_mistake_of(exc, text)) from None
    except RecursionError:
        raise UnreadableYamlError(Mistake(1, "is nested too deeply")) from None


def _read(text: str) -> YamlSource:
    """Return what a text says. libyaml reads it ten times as fast; where it refuses, Python's parser says what is wrong.

    The two differ on a lone ``!``, and on a byte order mark behind the start.
    """
    if yaml.__with_libyaml__ and not {"!", "\ufeff"} & set(text):
        with suppress(yaml.YAMLError, RecursionError):
            return _Reader(_FastLoader(text)).read()
    return _Reader(_Loader(text)).read()


def _bounded(path: Path) -> bytes:
    """Return the content of a regular file; links are followed, to a device or a pipe as well, and those have no end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnreadableYamlError(Mistake(1, "cannot be read: it is not a regular file"))
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise UnreadableYamlError(Mistake(1, f"is larger than {MOST_BYTES:,} bytes; write a smaller file"))
    return content


class _Bounds(Composer):
    """Counts the values that a node stands for, those behind aliases included, while it is composed."""

    def __init__(self) -> None:
        Composer.__init__(self)  # The class behind this one may be another, with other arguments.
        self._values: dict[int, int] = {}
        self._composed = self._level = 0

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        self._composed += 1
        if self._composed > MOST_VALUES:
            mark = self.peek_event().start_mark  # type: ignore[attr-defined]
            raise yaml.MarkedYAMLError(problem=f"the file has more than {MOST_VALUES:,} values", problem_mark=mark)
        if self._level >= MOST_LEVELS:
            mark = self.peek_event().start_mark  # type: ignore[attr-defined]
            problem = f"it is nested too deeply: more than {MOST_LEVELS} values are inside of each other"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
        self._level += 1
        node = super().compose_node(parent, index)
        self._level -= 1
        if node is None:
            return None
        if id(node) not in self._values:
            inner = (part for item in node.value for part in item) if isinstance(node, MappingNode) else node.value
            count = 1 if isinstance(node, ScalarNode) else 1 + sum(self._values.get(id(one), 1) for one in inner)
            if count > MOST_VALUES:
                problem = f"aliases (*) expand it to more than {MOST_VALUES:,} values; use fewer aliases"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
            self._values[id(node)] = count
        return node


class _Loader(_Bounds, yaml.SafeLoader):
    """Python's own parser."""

    def __init__(self, text: str) -> None:
        yaml.SafeLoader.__init__(self, text)
        _Bounds.__init__(self)


class _FastLoader(_Bounds, SafeConstructor, Resolver):
    """The events of libyaml, composed here, as its own composer knows no bounds."""

    def __init__(self, text: str) -> None:
        _Bounds.__init__(self)
        SafeConstructor.__init__(self)
        Resolver.__init__(self)
        events = yaml.CSafeLoader(text)
        self.check_event, self.peek_event, self.get_event = events.check_event, events.peek_event, events.get_event
        self.dispose = events.dispose

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        node = super().compose_node(parent, index)
        is_value_of_key = isinstance(parent, MappingNode) and index is not None
        if isinstance(node, ScalarNode) and not (node.value or node.style or is_value_of_key):
            raise yaml.YAMLError("libyaml gives what is left out the line of what follows")
        return node


class _Reader:
    """Walks the nodes of one document."""

    def __init__(self, loader: _Loader | _FastLoader) -> None:
        self._loader = loader
        self._lines: dict[Keys, int] = {}
        self._mistakes: list[Mistake] = []

    def read(self) -> YamlSource:
        try:
            node = self._loader.get_single_node()
            root = None if node is None else self._value(node, (), ())
        finally:
            self._loader.dispose()
        return YamlSource(root, self._lines, tuple(self._mistakes))

    def _value(self, node: Node, keys: Keys, around: tuple[int, ...]) -> Any:
        if id(node) in around:
            raise yaml.MarkedYAMLError(problem="a value contains itself", problem_mark=node.start_mark)
        around = (*around, id(node))
        self._lines.setdefault(keys, _line(node))
        if isinstance(node, MappingNode):
            return dict(self._items(node, keys, around))
        if isinstance(node, SequenceNode):
            return [self._value(item, (*keys, position), around) for position, item in enumerate(node.value)]
        return self._scalar(node)

    def _items(self, node: MappingNode, keys: Keys, around: tuple[int, ...]) -> Iterator[tuple[Any, Any]]:
        self._note_duplicates(node, keys)
        self._loader.flatten_mapping(node)
        for key_node, value_node in node.value:
            key = self._scalar(key_node)
            self._lines[(*keys, key)] = _line(key_node)
            yield key, self._value(value_node, (*keys, key), around)

    def _note_duplicates(self, node: MappingNode, keys: Keys) -> None:
        first: dict[str, int] = {}
        for key_node, _ in node.value:
            if not isinstance(key_node, ScalarNode):
                continue
            if key_node.value in first:
                what = f"is given twice; the first one is in line {first[key_node.value]}"
                self._mistakes.append(Mistake(_line(key_node), what, (*keys, key_node.value)))
            first.setdefault(key_node.value, _line(key_node))

    def _scalar(self, node: Node) -> Any:
        if not isinstance(node, ScalarNode):
            raise yaml.MarkedYAMLError(problem="a key must be plain text", problem_mark=node.start_mark)
        if node.tag in _NUMBERS and len(node.value) > _LONGEST_NUMBER:
            raise yaml.MarkedYAMLError(problem="a number is too long", problem_mark=node.start_mark)
        try:
            value = self._loader.construct_object(node)
        except ValueError as exc:  # such as the date 2026-99-99
            raise yaml.MarkedYAMLError(problem=f"not a value: {exc}", problem_mark=node.start_mark) from None
        except (ArithmeticError, AttributeError, LookupError, TypeError):  # such as !!int "" and !!bool "x"
            problem = "a value does not fit what ! says of it; write it without !"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from None
        if refused := _refused(value):
            raise yaml.MarkedYAMLError(problem=refused, problem_mark=node.start_mark)
        return value


def _refused(value: Any) -> str | None:
    """Return why no file may have a value; None where it may."""
    if isinstance(value, str) and _UNSHOWABLE.search(value):
        return "text holds a control character; remove it"
    if isinstance(value, int | float) and not (math.isfinite(value) and abs(value) <= MOST_NUMBER):
        return f"a number must be finite, and at most {MOST_NUMBER}"
    return None


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _mistake_of(exc: yaml.YAMLError, text: str) -> Mistake:
    """Say what the parser found, without repeating text of the file: it might be a password."""
    if isinstance(exc, ReaderError):
        return Mistake(text.count("\n", 0, exc.position) + 1, "holds a control character, which YAML forbids")
    if not isinstance(exc, yaml.MarkedYAMLError):
        return Mistake(1, "is not YAML")
    mark = exc.problem_mark or exc.context_mark
    line = int(mark.line) + 1 if mark else 1
    problem = exc.problem or "is not YAML"
    if problem == "mapping values are not allowed here":
        problem = (
            "text with a colon and a space in it, such as the type STRUCT<sku: STRING>, is not YAML as it stands: quote it, "
            "or use `>-` after the key and write it in the next line, indented"
        )
    elif problem.startswith("expected ',' or '}'"):
        problem += "; text with `: ` or `, ` in it is not YAML as it stands inside { }: quote it"
    elif "undefined alias" in problem:
        problem = "text that starts with * must be in quotes"
    elif "could not determine a constructor" in problem or "tag" in problem:
        problem = "text that starts with ! must be in quotes"
    elif "expected a single document" in str(exc.context):
        problem = "only one document is allowed in a file: a second --- begins here"
    return Mistake(line, f"YAML cannot be read here: {problem}")
