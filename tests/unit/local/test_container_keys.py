"""The keys of the containers: made once, complete, for their reader only."""

from __future__ import annotations

import json
import stat
from dataclasses import asdict
from pathlib import Path

import pytest

from lakebound.local.container.keys import KeyFolders, main, missing_keys, write_keys


@pytest.fixture
def folders(tmp_path: Path) -> KeyFolders:
    found = KeyFolders(*(tmp_path / name for name in ("airflow", "cli", "database", "kafka", "pipelines")))
    for folder in every(found):
        folder.mkdir()
    return found


def every(folders: KeyFolders) -> tuple[Path, ...]:
    own = (folders.airflow, folders.cli, folders.database, folders.kafka)
    return (*own, folders.pipelines, folders.warehouses, folders.channels)


def contents(folders: KeyFolders) -> dict[str, str]:
    files = [file for folder in every(folders) for file in folder.iterdir() if file.is_file()]
    return {f"{file.parent.name}/{file.name}": file.read_text() for file in files}


def test_what_must_agree_agrees(folders: KeyFolders) -> None:
    write_keys(missing_keys(folders, "postgres"))
    found = contents(folders)
    password = found["airflow/admin_password"]
    assert json.loads(found["airflow/passwords.json"]) == {"admin": password}
    assert found["cli/login"] == f"admin:{password}"
    database = found["database/password"]
    assert found["airflow/sql_alchemy_conn"] == f"postgresql+psycopg2://airflow:{database}@postgres:5432/airflow"
    assert found["kafka/password"] == found["pipelines/kafka"]
    assert {name for name in found if not name.startswith("airflow/")} == {
        "cli/login",
        "database/password",
        "kafka/password",
        "pipelines/kafka",
        "warehouses/object-store-key",
        "warehouses/object-store-key-id",
    }


def test_what_an_earlier_version_wrote_moves_to_where_no_pipeline_may_name_it(folders: KeyFolders) -> None:
    for file in (folders.pipelines / "object-store-key", folders.pipelines / "object-store-key-id", folders.airflow / "login"):
        file.write_text(f"earlier {file.name}")
    (folders.airflow / "admin_password").write_text("earlier")
    assert main(arguments_of(folders)) == 0
    found = contents(folders)
    assert found["warehouses/object-store-key"] == "earlier object-store-key"
    assert found["warehouses/object-store-key-id"] == "earlier object-store-key-id"
    assert found["cli/login"] == "admin:earlier"
    assert not {"pipelines/object-store-key", "pipelines/object-store-key-id", "airflow/login"} & found.keys()


def arguments_of(folders: KeyFolders) -> list[str]:
    return [text for name, folder in asdict(folders).items() for text in (f"--{name}", str(folder))]


def test_the_broker_gets_the_password_with_which_pipelines_log_in_already(folders: KeyFolders) -> None:
    """In an installation of before, the broker read the pipelines' folder; and a person may change the password there."""
    for password in ("earlier", "changed by a person\n"):
        (folders.pipelines / "kafka").write_text(password)
        assert main(arguments_of(folders)) == 0
        assert contents(folders)["kafka/password"] == password.strip()
        assert contents(folders)["pipelines/kafka"] == password
    assert missing_keys(folders, "postgres") == {}


def test_a_second_start_makes_nothing(folders: KeyFolders) -> None:
    write_keys(missing_keys(folders, "postgres"))
    before = contents(folders)
    assert missing_keys(folders, "postgres") == {}
    assert contents(folders) == before


@pytest.mark.parametrize("lost", ["cli/login", "kafka/password", "airflow/passwords.json", "airflow/sql_alchemy_conn"])
def test_a_lost_file_is_made_again_from_those_that_it_must_agree_with(folders: KeyFolders, lost: str) -> None:
    write_keys(missing_keys(folders, "postgres"))
    before = contents(folders)
    (folders.airflow.parent / lost).unlink()
    write_keys(missing_keys(folders, "postgres"))
    assert contents(folders) == before


def test_two_installations_share_no_key(folders: KeyFolders) -> None:
    one, other = missing_keys(folders, "postgres"), missing_keys(folders, "postgres")
    assert not set(one.values()) & set(other.values())


def test_only_its_owner_may_read_a_key(folders: KeyFolders) -> None:
    write_keys(missing_keys(folders, "postgres"))
    files = [file for folder in every(folders) for file in folder.iterdir() if file.is_file()]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_the_command_names_files_and_no_key(folders: KeyFolders, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments_of(folders)) == 0
    told = capsys.readouterr().out
    assert "fernet_key" in told
    assert not any(key in told for key in contents(folders).values())
