"""What makes rows has one hash: it changes with what makes them, in whichever module, and with nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from lakebound.formats.schemas import SchemaText
from lakebound.landing.row_source import checked_out, row_source
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.transform_files import transform_files

FILES = {
    "transforms/__init__.py": "",
    "transforms/orders.py": "from transforms import money\nfrom .deep.names import of\nimport transforms.other as o, json\n",
    "transforms/money.py": "import transforms.orders\nimport lakebound_spark.columns\n",
    "transforms/deep/__init__.py": "",
    "transforms/deep/names.py": "from ..last import x\n",
    "transforms/last.py": "x = 1\n",
    "transforms/other.py": "def broken(:\n",
    "transforms/unused.py": "x = 2\n",
    "lakebound_spark/columns.py": "",
}
IMPORTED = {name for name in FILES if name.startswith("transforms")} - {"transforms/unused.py"}


@pytest.fixture
def apps(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        file = tmp_path / "apps" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path / "apps"


def spec(**changes: Any) -> PipelineSpec:
    body = {
        "pipeline": "orders",
        "topics": ["orders"],
        "connection": {"bootstrap_servers": "127.0.0.1:1"},
        "value": {"format": "json", "schema": "v INT"},
        "freshness": "1s",
        "transform": "transforms.orders.to_rows",
        "tables": [{"format": "delta", "name": "shop.orders"}],
    }
    return PipelineSpec.model_validate(body | changes)


def test_modules_that_the_transform_imports_belong_to_it(apps: Path) -> None:
    assert {str(file.relative_to(apps)) for file in transform_files(spec(), apps)} == IMPORTED
    assert transform_files(spec(transform=None), apps) == ()
    assert transform_files(spec(transform="transforms.nowhere.to_rows"), apps) == (apps / "transforms" / "__init__.py",)


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_change_of_a_module_is_another_source_where_rows_are_made_by_it(apps: Path, name: str) -> None:
    before = row_source(spec(), apps, {}).hash
    (apps / name).write_text(FILES[name] + "# changed")
    assert (row_source(spec(), apps, {}).hash != before) == (name in IMPORTED)


def test_fields_that_say_where_and_when_rows_go_are_none_of_the_source(apps: Path) -> None:
    before = row_source(spec(), apps, {}).hash
    same: list[dict[str, Any]] = [
        {"freshness": "250ms"},
        {"description": "x"},
        {"tables": [{"format": "iceberg", "name": "shop.others"}]},
    ]
    others: list[dict[str, Any]] = [
        {"value": {"format": "json", "schema": "v BIGINT"}},
        {"null_values": "skip"},
        {"transform": "transforms.orders.other"},
        {"key": {"format": "string"}},
    ]
    assert {row_source(spec(**one), apps, {}).hash for one in same} == {before}
    assert len({before} | {row_source(spec(**one), apps, {}).hash for one in others}) == 1 + len(others)


def test_a_schema_file_that_says_something_else_is_another_source(apps: Path) -> None:
    texts = ['"long"', ' "long" ', '"string"']
    plain, laid_out, other = (row_source(spec(), apps, {"value": SchemaText("avro", text)}).hash for text in texts)
    assert plain == laid_out != other and plain != row_source(spec(), apps, {"key": SchemaText("avro", texts[0])}).hash


def test_the_commit_is_that_of_the_checkout_and_git_is_not_run(apps: Path, tmp_path: Path) -> None:
    assert checked_out(apps) == ""

    def git(*words: str, at: Path = tmp_path) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b.invalid", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", *who, *words], cwd=at, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-q", "-m", "first")
    commit = git("rev-parse", "HEAD")
    assert checked_out(apps) == commit and row_source(spec(), apps, {}).revision == commit[:12]
    git("pack-refs", "--all")
    assert checked_out(apps) == commit
    git("worktree", "add", "-q", "-b", "more", str(tmp_path / "more"))
    assert checked_out(tmp_path / "more" / "apps") == commit
    git("checkout", "-q", "--detach")
    assert checked_out(apps) == commit
    secret = tmp_path / "secret"
    secret.write_text("nothing that is a commit")
    (tmp_path / ".git" / "HEAD").write_text("ref: ../secret\n")
    assert checked_out(apps) == ""
