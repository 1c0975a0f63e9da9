"""The keys of the containers: made once, complete, for their reader only."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from lakebound.local.container.keys import KeyFolders, main, missing_keys, write_keys


@pytest.fixture
def folders(tmp_path: Path) -> KeyFolders:
    found = KeyFolders(tmp_path / "airflow", tmp_path / "database", tmp_path / "pipelines")
    for folder in (found.airflow, found.database, found.pipelines):
        folder.mkdir()
    return found


def contents(folders: KeyFolders) -> dict[str, str]:
    files = [file for folder in (folders.airflow, folders.database, folders.pipelines) for file in folder.iterdir()]
    return {f"{file.parent.name}/{file.name}": file.read_text() for file in files}


def test_what_must_agree_agrees(folders: KeyFolders) -> None:
    write_keys(missing_keys(folders, "postgres"))
    found = contents(folders)
    password = found["airflow/admin_password"]
    assert json.loads(found["airflow/passwords.json"]) == {"admin": password}
    assert found["airflow/login"] == f"admin:{password}"
    database = found["database/password"]
    assert found["airflow/sql_alchemy_conn"] == f"postgresql+psycopg2://airflow:{database}@postgres:5432/airflow"
    keys = {"kafka", "object-store-key", "object-store-key-id"}
    assert {name for name in found if not name.startswith("airflow/")} == {
        "database/password",
        *(f"pipelines/{key}" for key in keys),
    }


def test_a_second_start_makes_nothing(folders: KeyFolders) -> None:
    write_keys(missing_keys(folders, "postgres"))
    before = contents(folders)
    assert missing_keys(folders, "postgres") == {}
    assert contents(folders) == before


@pytest.mark.parametrize("lost", ["login", "passwords.json", "sql_alchemy_conn"])
def test_a_lost_file_is_made_again_from_those_that_it_must_agree_with(folders: KeyFolders, lost: str) -> None:
    write_keys(missing_keys(folders, "postgres"))
    before = contents(folders)
    (folders.airflow / lost).unlink()
    write_keys(missing_keys(folders, "postgres"))
    assert contents(folders) == before


def test_two_installations_share_no_key(folders: KeyFolders) -> None:
    one, other = missing_keys(folders, "postgres"), missing_keys(folders, "postgres")
    assert not set(one.values()) & set(other.values())


def test_only_its_owner_may_read_a_key(folders: KeyFolders) -> None:
    write_keys(missing_keys(folders, "postgres"))
    files = [file for folder in (folders.airflow, folders.database, folders.pipelines) for file in folder.iterdir()]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_the_command_names_files_and_no_key(folders: KeyFolders, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--airflow", str(folders.airflow), "--database", str(folders.database), "--pipelines", str(folders.pipelines)]
    assert main(arguments) == 0
    told = capsys.readouterr().out
    assert "fernet_key" in told
    assert not any(key in told for key in contents(folders).values())
