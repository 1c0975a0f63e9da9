"""The pages that people read: every link and anchor is there, and every command that they print exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from tests.support.page_blocks import PAGES, tokens
from tests.support.printed_commands import REPOSITORY, in_shell, wrong

from lakebound.control.folder import ControlFolder

SHELL = {"bash", "sh", "shell", "console", ""}
WITH_PLACES = re.compile(r"[…\[\]{}|]|\.\.\.|<\w")


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    found: list[str] = []
    all_tokens = tokens(page)
    for place, token in enumerate(all_tokens):
        if token.type == "heading_open":
            words = "".join(child.content for child in all_tokens[place + 1].children or ())
            slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
            found.append(f"{slug}-{found.count(slug)}" if slug in found else slug)
    return frozenset(found)


def broken_links(page: Path) -> Iterator[str]:
    """Yield the relative links of a page that lead nowhere."""
    for token in tokens(page):
        target = token.attrGet("href") or token.attrGet("src")
        if not isinstance(target, str) or re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists():
            yield f"{target}: there is no such file"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            yield f"{target}: there is no such heading"


def printed(page: Path) -> Iterator[tuple[list[str], bool]]:
    """Yield the commands of a page, and whether each is whole; a span with … or [ ] in it is a pattern and no command."""
    for token in tokens(page):
        if token.type == "fence" and token.info.strip() in SHELL:
            yield from ((words, True) for words in in_shell(token.content))
        elif token.type == "code_inline" and not WITH_PLACES.search(token.content):
            yield from ((words, False) for words in in_shell(token.content))


def missing_names(page: Path) -> Iterator[str]:
    """Yield what a page's ``python -c`` commands import and the code does not have."""
    for code in re.findall(r'python -c "([^"]*)"', page.read_text()):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and node.module:
                module = import_module(node.module)
                yield from (f"{node.module}: {alias.name}" for alias in node.names if not hasattr(module, alias.name))


def wrong_commands(page: Path) -> list[str]:
    """Return what is wrong with a page's commands."""
    return [problem for words, is_whole in printed(page) for problem in wrong(words, is_whole=is_whole)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_link_leads_somewhere_and_every_command_exists(page: Path) -> None:
    assert list(broken_links(page)) == []
    assert wrong_commands(page) == []
    assert list(missing_names(page)) == []


def test_every_line_of_who_may_do_what_names_tests_that_are_there() -> None:
    text = (REPOSITORY / "docs" / "security.md").read_text()
    lines = [line for line in text.split("\n") if line.startswith("| ") and not line.startswith("| ---")]
    rows = [line for line in lines if not line.startswith(("| who ", "| in the YAML ", "| what "))]
    assert len(rows) >= 13
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)`", row)
        assert named, f"no test is named: {row[:80]}"
        assert all((REPOSITORY / one).exists() for one in named), named


def test_what_is_wrong_with_a_page_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One `two`, three\n[a](#one-two-three) [b](#gone) [c](away.md) [d](page.md#nor-this) [e](https://example.org/)\n"
        "![f](away.svg)\n\n`lakebound mend P`, `lakebound prove P --deep` and `lakebound prove PIPELINE [--deep]`\n\n"
        "```bash\nA=1 sudo -u ada .venv/bin/lakebound alerts --tset | grep x  # lakebound nothing\ncat x && make coffee\n```\n"
        '`python -c "from lakebound.settings import load_settings, load_sets; load_settings()"`\n'
    )
    assert list(missing_names(page)) == ["lakebound.settings: load_sets"]
    assert [one.partition(":")[0] for one in broken_links(page)] == ["#gone", "away.md", "page.md#nor-this", "away.svg"]
    assert wrong_commands(page) == [
        "there is no command 'mend'",
        "lakebound alerts has no option --tset",
        "make has no target 'coffee'",
    ]
    assert (["lakebound", "prove", "P", "--deep"], False) in list(printed(page))


def test_the_pages_are_found() -> None:
    names = {str(page.relative_to(REPOSITORY)) for page in PAGES}
    assert {"README.md", "docs/concepts.md", "docs/how-to/alerts.md", "include/runbooks/stall.md"} <= names
    assert sum(len(list(printed(page))) for page in PAGES) > 200


def test_contributors_see_the_rooms_and_the_commonest_changes_as_they_are() -> None:
    contributing, architecture = (REPOSITORY / "CONTRIBUTING.md").read_text(), (REPOSITORY / "docs/architecture.md").read_text()
    for begin, end in (("```mermaid", "```\n"), ("| to change | go to |", "\n\n")):
        part = architecture[architecture.index(begin) :]
        shown = part[: part.index(end, len(begin))]
        assert shown.count("\n") > 15 and shown in contributing


def test_the_files_of_a_pipelines_state_are_listed() -> None:
    page = (REPOSITORY / "docs/architecture.md").read_text()
    section = page[page.index("## State of a pipeline") :].partition("\n## ")[0]
    folder = ControlFolder(Path("home"), "orders")
    properties = (name for name, value in vars(ControlFolder).items() if isinstance(value, property))
    names = {getattr(folder, name).name for name in properties if name not in ("folder", "is_shared", "shared")}
    assert names and [name for name in sorted(names) if f"`{name}" not in section] == []
