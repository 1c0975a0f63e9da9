"""Runbooks as HTML. What looks like HTML in a page is shown as text, and links lead to other runbooks or to the web."""

from __future__ import annotations

import html
import re
from functools import cache
from pathlib import Path
from typing import Any

import lakebound

FOLDER = Path(lakebound.__file__).parents[1] / "runbooks"
"""Beside the package, in a checkout and in the image."""

_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


def rendered_runbook(name: str, folder: Path = FOLDER) -> str | None:
    """Return a runbook as a fragment of HTML; None where there is no such page.

    Args:
        name: Without its ending. Anything that is no name of a page, such as a path, is not there.
        folder: Of the pages.
    """
    if _NAME.fullmatch(name) is None:
        return None
    try:
        text = (folder / f"{name}.md").read_text()
    except FileNotFoundError:
        return None
    return rendered(text)


def rendered(text: str) -> str:
    """Return Markdown as a fragment of HTML; a link to another runbook leads there, any other relative link becomes text."""
    markdown = _markdown()
    tokens = markdown.parse(text)
    for token in tokens:
        if token.children:
            token.children = _with_links_that_lead_somewhere(token.children)
    return str(markdown.renderer.render(tokens, markdown.options, {}))


def runbook_page(name: str, fragment: str) -> str:
    """Return the fragment as a page of its own."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(name)} – Lakebound</title>'
        f'<link rel="stylesheet" href="../static/page.css"></head><body><nav><a href="../">All pipelines</a></nav>'
        f'<main class="runbook">{fragment}</main></body></html>'
    )


@cache
def _markdown() -> Any:
    from markdown_it import MarkdownIt  # only where a runbook is read

    return MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


def _with_links_that_lead_somewhere(tokens: list[Any]) -> list[Any]:
    kept, is_dropped = [], False
    for token in tokens:
        if token.type == "link_open":
            target = _target(str(token.attrGet("href") or ""))
            is_dropped = target is None
            if target is not None:
                token.attrSet("href", target)
                if target.startswith("http"):
                    token.attrSet("rel", "noopener noreferrer")
        if not (is_dropped and token.type in ("link_open", "link_close")):
            kept.append(token)
    return kept


def _target(href: str) -> str | None:
    own = re.fullmatch(r"([a-z0-9][a-z0-9-]*)\.md", href)
    if own is not None:
        return own[1]
    return href if href.startswith(("https://", "http://")) else None
