"""The page of a validated range: whatever a record, a name or an error holds is text in it."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

from lakebound.control.findings import Severity
from lakebound.inspection.validation.page import page_of
from lakebound.inspection.validation.verdict import ExpectationResult

MARKUP = [
    "<script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "<!-- --><svg/onload=alert(1)>",
    "&lt;script&gt;",
    "]]><iframe srcdoc='x'>",
    "\x00<b\x00>",
    "</title><base href=//evil>",
]


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def parsed(text: Any) -> Tags:
    """Return the page with a text wherever one can come from outside."""
    config = {"type": text, "meta": {"label": text}, "notes": [text, text]}
    answer = {"expectation_config": config, "result": {"partial_unexpected_list": [text, {text: [text]}]}}
    body = {"table": text, "versions": [text, text], "rows": 7, "suites": [{"results": [answer]}]}
    result = ExpectationResult(
        label=text, severity=Severity.CRITICAL, passed=False, samples=(text, text), observed=text, is_of_rows=True
    )
    found = Tags()
    found.feed(page_of(body, [result], {text: text}))
    return found


@pytest.mark.parametrize("text", MARKUP)
def test_no_element_comes_from_outside(text: str) -> None:
    page = parsed(text)
    assert page.tags == parsed("plain").tags
    assert text in page.texts


def test_a_page_without_answers() -> None:
    page = page_of({"table": "delta:a.b", "versions": [], "rows": 0, "suites": []}, [], {})
    assert "delta:a.b: versions none" in page and "Not evaluated" not in page
