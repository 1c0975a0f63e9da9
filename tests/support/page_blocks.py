"""The pieces of code in the pages that people read, with the language that each names."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.support.printed_commands import REPOSITORY

_PATTERNS = ("*.md", "docs/**/*.md", "include/runbooks/*.md", "examples/**/*.md", "tests/**/README.md")
# The page of the site's first view is in the site's tree; `make docs` looks at its links.
PAGES = sorted(page for pattern in _PATTERNS for page in REPOSITORY.glob(pattern) if "site" not in page.parts)


class Block(NamedTuple):
    """A piece of code.

    Attributes:
        language: As the page names it; empty where it names none.
        text: The code.
        line: Where it begins in the page.
    """

    language: str
    text: str
    line: int


@cache
def tokens(page: Path) -> tuple[Token, ...]:
    """Return a page's tokens, those inside of others among them."""
    found: list[Token] = []
    for token in MarkdownIt("commonmark").enable("table").parse(page.read_text()):
        found += [token, *(token.children or ())]
    return tuple(found)


@cache
def blocks(page: Path) -> tuple[Block, ...]:
    """Return the pieces of code of a page, in its order. What stands inside of lines is not looked at: that takes longer."""
    found = MarkdownIt("commonmark").enable("table").disable("inline").parse(page.read_text())
    return tuple(
        Block(token.info.strip(), token.content, (token.map or [0])[0] + 1)
        for token in found
        if token.type in ("fence", "code_block")
    )
