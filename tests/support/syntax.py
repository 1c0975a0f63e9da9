"""The syntax of the project's own modules, parsed once for all tests of a process."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path


@cache
def nodes_of(file: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a module's syntax, the module first."""
    nodes = tuple(ast.walk(ast.parse(file.read_text())))
    gc.freeze()  # a million of them stay, and Python's collector would walk them again and again
    return nodes
