"""Text that an author writes is shown as text: it forges no line, leads nowhere, calls nobody, whoever shows it."""

from __future__ import annotations

import itertools
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from tests.support.streams.author_yaml import RULES, bodies, problems_of, with_value
from tests.support.streams.pipeline_files import RIGHT, settings, write

from lakebound.alerts.channels.apprise import AppriseSpec
from lakebound.alerts.model import Message, MessageKind, ToldAlert
from lakebound.alerts.pipeline_file_findings import pipeline_file_findings
from lakebound.alerts.wording import Links, html_of
from lakebound.control.findings import Severity
from lakebound.inspection.validation.expectation_mistakes import parse
from lakebound.plain_text import chat_text, markdown_text
from lakebound.settings import Settings
from lakebound.spec.load import load_pipelines
from lakebound.spec.value_bounds import MOST_NAME, MOST_PROSE
from lakebound.spec.yaml_source import read_yaml
from lakebound_airflow.defaults import describe

__all__ = ["settings"]
MARKUP = (
    *("[log in again](https://evil.test/login)", "![](https://evil.test/seen.png)", "[a]: https://evil.test\n\n[a]"),
    *("<a href='https://evil.test'>x</a>", "<img src=x onerror=alert(1)>", "<script>alert(1)</script>", "<https://evil.test>"),
    *(
        "# A heading",
        "| a |\n| --- |\n| b |",
        "```\nlakebound stop\n```",
        "    indented code",
        "- a list",
        "1. a list",
        "***",
        "&lt;b&gt;",
    ),
    *("<!channel> look", "<https://evil.test|the runbook>", "@everyone look", "@here", "<@U012>", "<!subteam^S1>"),
)
OF_LINES = {
    "description",
    "value.schema",
    "value.json_schema",
    "key.schema",
    "key.json_schema",
    "reference.schema",
    "reference.query",
}
"""Fields in which lines may end."""
UNREACHED = {"maintenance.compaction.sort_by", "quarantine.partition_by", "value.ignored_fields"}
"""Not in the YAML of these tests, because a pipeline has others instead."""
OF_ONE_LINE = RULES.keys() - OF_LINES - {"spark.conf"}
"""One walk checks them all, so each is tried with one of the ends."""
LINE_ENDS = ("a\nb", "a\rb", "a\tb", "a\x85b", "a\u2028b")


class Tags(HTMLParser):
    """The tags of a fragment, and its text."""

    def __init__(self, fragment: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(fragment)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def rendered(text: str) -> Tags:
    return Tags(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))


def words(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("text", MARKUP)
def test_a_description_is_text_on_the_page_of_a_dag(settings: Settings, text: str) -> None:
    plain = load_pipelines_with(settings, "plain words")
    hostile = load_pipelines_with(settings, text)
    page, without = rendered(describe("The DAG.", hostile)), rendered(describe("The DAG.", plain))
    assert [tag for tag in page.tags if tag != "p"] == [tag for tag in without.tags if tag != "p"]
    assert words(text) in words(page.text)


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=80))
def test_any_text_is_shown_as_it_is_written(text: str) -> None:
    page = rendered(f"before\n\n{markdown_text(text)}\n\nafter")
    assert {*page.tags} == {"p"}
    assert words(page.text) == words(f"before{text}after")


@pytest.mark.parametrize("text", MARKUP)
def test_a_message_leads_nowhere_and_calls_nobody(text: str) -> None:
    told = ToldAlert(id="a", source="validation", cause=text, severity=Severity.WARNING, what=text, since=0.0)
    message = Message(id="m", kind=MessageKind.OPENED, pipeline="orders", at=0.0, alerts=(told,))
    sent = AppriseSpec(connection="ops").call(message, Links(runbooks="https://wiki/{runbook}")).arguments
    for part in (sent["title"], sent["body"]):
        assert not {*"<>"} & {*part}
        assert "](" not in part and "][" not in part
        assert "@everyone" not in part and "@here" not in part
    mail = Tags(html_of(message, Links()))
    assert {*mail.tags} <= {"table", "tr", "td", "b", "br"}


def test_only_addresses_of_its_own_are_links_in_an_email() -> None:
    told = ToldAlert(
        id="a", source="x", cause="c", severity=Severity.WARNING, what="https://evil.test", since=0.0, runbook="stall"
    )
    message = Message(id="m", kind=MessageKind.OPENED, pipeline="orders", at=0.0, alerts=(told,))
    assert Tags(html_of(message, Links(runbooks="https://wiki/{runbook}"))).tags.count("a") == 1


@given(st.text(max_size=80))
def test_text_for_a_chat_keeps_its_words(text: str) -> None:
    shown = chat_text(text)
    assert len(shown) >= len(text)
    assert [char for char in shown if char.isalnum()] == [char for char in text if char.isalnum()]


@pytest.mark.parametrize(("field", "value"), [*zip(sorted(OF_ONE_LINE), itertools.cycle(LINE_ENDS), strict=False)])
def test_a_name_is_in_one_line(settings: Settings, field: str, value: str) -> None:
    given = [*with_value(field, value)]
    assert given or field in UNREACHED
    assert all(problems_of(settings, body) for body in given)


@pytest.mark.parametrize("value", LINE_ENDS)
def test_each_end_of_a_line_is_refused_in_a_name(settings: Settings, value: str) -> None:
    assert all(problems_of(settings, body) for body in with_value("owners", value))


@pytest.mark.parametrize("field", sorted(RULES.keys() - {"value.json_schema", "key.json_schema"}))
def test_no_text_is_without_an_end(settings: Settings, field: str) -> None:
    most = MOST_PROSE if field in OF_LINES else MOST_NAME
    given = [*with_value(field, "a" * (most + 1))]
    assert given or field in UNREACHED
    assert all(problems_of(settings, body) for body in given)


def test_the_right_files_of_these_tests_are_not_refused(settings: Settings) -> None:
    assert [problems_of(settings, body) for body in bodies()] == [[]] * 7
    write(settings, RIGHT + "description: |\n  Two lines\n\n  and a paragraph.\n")
    assert load_pipelines(settings).problems == []


@pytest.mark.parametrize("name", LINE_ENDS[:3])
def test_the_name_of_an_expectation_is_in_one_line(settings: Settings, name: str) -> None:
    one = f'  - {{expect: rows_to_satisfy, rule: "a > 0", name: {name!r}}}\n'.replace("'", '"')
    path = write(settings, f"pipeline: orders\nexpectations:\n{one}", "expected.yaml")
    file, mistakes = parse(read_yaml(path))
    assert file is None and "must be in one line" in mistakes[0].what


def test_a_rule_of_several_lines_names_its_expectation_in_one(settings: Settings) -> None:
    path = write(
        settings,
        "pipeline: orders\nexpectations:\n  - expect: rows_to_satisfy\n    rule: |\n      a > 0\n      OR b\n",
        "e.yaml",
    )
    file, mistakes = parse(read_yaml(path))
    assert file is not None and not mistakes
    assert file.expectations[0].label == "rows_to_satisfy(a > 0 OR b )"


def test_the_name_of_a_file_forges_no_line_of_a_message(settings: Settings) -> None:
    (settings.pipelines / "x\x1b[31m\nrunbook: https:.yaml").write_text("pipeline: [")
    (found,) = pipeline_file_findings(load_pipelines(settings), 0.0)
    for text in (found.what, found.cause, str(found.evidence["file"])):
        assert text.isprintable()


def load_pipelines_with(settings: Settings, description: str) -> Any:
    quoted = description.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    write(settings, RIGHT + f'description: "{quoted}"\n')
    loaded = load_pipelines(settings)
    assert not loaded.problems
    return loaded.specs["orders"]
