"""Runbooks: every page that is named anywhere is there, says everything, quotes what is said, and names commands that exist."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
from functools import cache
from pathlib import Path

import pytest
from tests.support.printed_commands import wrong
from tests.support.runbook_pages import FOLDER, PAGES, REPOSITORY, SPAN, blocks, commands
from tests.support.syntax import nodes_of

from lakebound import errors
from lakebound.control.runbooks import RUNBOOKS
from lakebound.errors import LakeboundError
from lakebound.inspection.doctor.foreign import diagnosis as foreign_diagnosis
from lakebound.operations.recovery.apply import RUNBOOKS as RUNBOOKS_OF_ACTIONS
from lakebound.operations.recovery.suggestion import ACTION_OF_RUNBOOK
from lakebound_airflow.notifications.alerts import RUNBOOKS as RUNBOOKS_OF_ALERTS
from lakebound_airflow.operators import control, recover

CODE = ("include/lakebound", "plugins/lakebound_airflow", "spark_apps", "dags")
ACTIONS = {"control": control.ACTIONS, "recover": recover.ACTIONS}
SECTIONS = ["You see", "It means", "It costs", "How urgent", "Do", "It is over when"]
NAME = re.compile(r"\brunbook ([a-z]+(?:-[a-z]+)*)\b")
LEAST_FRAGMENT = 8


@cache
def syntax() -> tuple[ast.AST, ...]:
    """Return the syntax of every module that may name a page or say something that a page quotes."""
    files = (path for folder in CODE for path in (REPOSITORY / folder).rglob("*.py"))
    return tuple(node for path in files for node in nodes_of(path))


@cache
def said() -> str:
    """Return every text in the code, an expression inside standing as … ."""
    texts = []
    for node in syntax():
        if isinstance(node, ast.JoinedStr):
            texts.append("".join(str(p.value) if isinstance(p, ast.Constant) else "…" for p in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.append(node.value)
    return "\n".join(texts)


def named_in_code() -> set[str]:
    """Return the names of pages that code gives as an argument, or tells a person."""
    found: set[str] = set()
    for node in syntax():
        if isinstance(node, ast.keyword) and node.arg == "runbook" and isinstance(node.value, ast.Constant):
            found |= {node.value.value} if isinstance(node.value.value, str) else set()
    return found | {match[1] for match in NAME.finditer(said()) if (FOLDER / f"{match[1]}.md").exists() or "-" in match[1]}


def named() -> set[str]:
    """Return the name of every page that anything points to."""
    lists = {
        *foreign_diagnosis.RUNBOOKS,
        *RUNBOOKS_OF_ACTIONS.values(),
        *ACTION_OF_RUNBOOK,
        *RUNBOOKS_OF_ALERTS.values(),
    }
    return {*lists, *named_in_code(), *pages_of_errors()}


def pages_of_errors() -> set[str]:
    """Return the page of every error, of those that this process knows."""
    found, waiting = set(), [LakeboundError]
    while waiting:
        error = waiting.pop()
        found.add(error.runbook)
        waiting.extend(error.__subclasses__())
    return found


def section(page: Path, title: str) -> str:
    """Return the text of a section."""
    match = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", page.read_text(), re.MULTILINE | re.DOTALL)
    assert match, f"{page.name} has no section {title!r}"
    return match[1].strip()


def test_the_names_are_collected_from_the_code() -> None:
    assert {"topic-recreated", "retention-passed", "no-ledger", "offsets-beyond-end", "table-restored"} <= named_in_code()
    assert {"proof-failed", "crash-loop", "foreign-checkpoint", "two-drivers", "refused"} <= named()


def test_every_page_is_in_the_table_and_everything_in_the_table_has_a_page() -> None:
    assert {page.stem for page in PAGES} == set(RUNBOOKS)


def test_every_page_that_is_named_is_there_and_every_page_is_named() -> None:
    table = REPOSITORY / "include/lakebound/control/runbooks.py"
    nodes = {id(node) for node in nodes_of(table)}
    texts = {node.value for node in syntax() if isinstance(node, ast.Constant) and id(node) not in nodes}
    assert named() <= set(RUNBOOKS) <= texts


def test_while_a_refusal_stands_nothing_runs() -> None:
    classes = [error for error in vars(errors).values() if isinstance(error, type) and issubclass(error, LakeboundError)]
    refusals = {error.runbook for error in classes if error.is_refusal}
    assert len(refusals) > 20
    # A crash loop has a cause of its own; a flood ends an application that runs, and keeps none from starting.
    assert {name for name in refusals if not RUNBOOKS[name].keeps_from_running} == {"crash-loop", "quarantine-flood"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
class TestPage:
    def test_it_has_every_section_in_order_and_none_is_empty(self, page: Path) -> None:
        titles = re.findall(r"^## (.*)$", page.read_text(), re.MULTILINE)
        assert titles == SECTIONS
        assert all(section(page, title) for title in SECTIONS)
        assert re.search(r"^1\. ", section(page, "Do"))

    def test_it_says_how_urgent_it_is_as_the_messages_do(self, page: Path) -> None:
        assert section(page, "How urgent") == RUNBOOKS[page.stem].urgency

    def test_its_title_is_that_of_the_table(self, page: Path) -> None:
        assert page.read_text().partition("\n")[0] == f"# {RUNBOOKS[page.stem].title}"

    def test_it_quotes_what_is_really_said(self, page: Path) -> None:
        quoted = [span for span in SPAN.findall(section(page, "You see")) if " " in span and not span.startswith("lakebound ")]
        fragments = [part.strip() for span in quoted for part in span.split("…") if len(part.strip()) >= LEAST_FRAGMENT]
        assert fragments or "`lakebound doctor" in section(page, "You see"), "nothing to recognise it by"
        assert [fragment for fragment in fragments if fragment not in said()] == []

    def test_every_command_exists(self, page: Path) -> None:
        problems = [problem for words in commands(page) for problem in wrong(words)]
        assert problems == []

    def test_every_dag_and_action_exists(self, page: Path) -> None:
        text = page.read_text()
        dags = set(re.findall(r"`([a-z]+)__P`", text))
        files = {path.stem for path in (REPOSITORY / "dags").glob("*.py")}
        assert dags <= files
        for dag, action in re.findall(r"`(?:DAG )?(control|recover)(?:__P)?`[^`.]*\baction `([a-z_]+)`", text):
            assert action in ACTIONS[dag]

    def test_it_says_where_its_commands_run_and_where_the_state_is(self, page: Path) -> None:
        before = page.read_text().partition("\n## ")[0]
        assert "Run the commands in the project's folder" in before and "`lakebound status` prints `LAKEBOUND_HOME`" in before
        assert "LAKEBOUND_HOME/" not in page.read_text(), "a path that no shell finds"

    def test_it_names_the_command_before_the_dag(self, page: Path) -> None:
        for paragraph in re.split(r"\n(?=\d\. )|\n\n", section(page, "Do")):
            dag = paragraph.find("control__P")
            command = re.search(r"`lakebound (control P \w+|start P|stop P)`", paragraph)
            assert dag < 0 or (command is not None and command.start() < dag), paragraph

    def test_other_pages_that_it_names_are_there(self, page: Path) -> None:
        for name in NAME.findall(page.read_text()):
            assert (FOLDER / f"{name}.md").exists(), name


@pytest.mark.parametrize(
    "command",
    [
        "lakebound mend P",
        "lakebound control P undo",
        "lakebound control P",
        "lakebound recover P --force",
        "lakebound recover P --action undo_everything",
        "lakebound recover P --apply",
        "lakebound recover",
        "lakebound schema P",
        "make coffee",
    ],
)
def test_a_wrong_command_is_noticed(command: str) -> None:
    assert list(wrong(shlex.split(command)))


@pytest.mark.parametrize(
    "command", ["lakebound recover P --action rebase --apply HASH", "lakebound incidents", "make chaos MINUTES=30"]
)
def test_a_right_command_passes(command: str) -> None:
    assert not list(wrong(shlex.split(command)))


@pytest.mark.parametrize("home", [None, "state of another place"])
def test_files_are_moved_aside_as_printed(tmp_path: Path, home: str | None) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "LAKEBOUND_HOME"}
    if home is not None:
        environment["LAKEBOUND_HOME"] = str(tmp_path / home)
    folder = tmp_path / (home or ".lakebound") / "pipelines" / "P"
    folder.mkdir(parents=True)
    for name in ("submission.json", "progress.json"):
        (folder / name).write_text("{}")
    for page in ("control-files", "table-dropped"):
        for block in blocks(FOLDER / f"{page}.md"):
            subprocess.run(["bash", "-euc", block], cwd=tmp_path, env=environment, check=True)
    assert sorted(file.name for file in folder.iterdir()) == ["progress.json.aside", "submission.json.aside"]


def test_what_takes_the_room_on_a_disk_is_listed_as_printed(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "LAKEBOUND_HOME"}
    logs = tmp_path / ".lakebound" / "pipelines" / "P" / "logs"
    logs.mkdir(parents=True)
    (logs / "a.log").write_text("x")
    (block,) = blocks(FOLDER / "disk-full.md")
    done = subprocess.run(["bash", "-euc", block], cwd=tmp_path, env=environment, check=True, capture_output=True, text=True)
    assert "IUse%" in done.stdout and ".lakebound/pipelines/P" in done.stdout and done.stderr == ""
