"""What ``lakebound check`` says of object stores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tests.support.s3.access import AccessKey
from tests.support.s3.faults import Fault
from tests.support.s3.running import S3Server
from tests.support.tables.stored import tell_key, warehouse_in

from lakebound.inspection import store_check
from lakebound.inspection.store_check import store_problems
from lakebound.settings import Settings, load_settings
from lakebound.spec.warehouses_file import warehouses_file
from lakebound.storage import options
from lakebound.storage.location import Location
from lakebound.storage.race import RaceResult


@pytest.fixture
def settings(tmp_path: Path, s3_server: S3Server, s3_bucket: str, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A machine whose warehouses are a folder and a bucket; its clients have little patience."""
    monkeypatch.setattr(options, "RETRIES", 0)
    tell_key(s3_server)
    settings = replace(load_settings({}), pipelines=tmp_path / "pipelines")
    bucket = warehouse_in(s3_server, s3_bucket).model_dump(mode="json", exclude_none=True)
    folder = {"location": str(tmp_path / "lake")}
    warehouses_file(settings).write_text(yaml.safe_dump({"warehouses": {"bucket": bucket, "folder": folder}}))
    return settings


def test_a_store_that_decides_races_has_no_problem_and_keeps_no_file(
    settings: Settings, s3_server: S3Server, s3_bucket: str
) -> None:
    assert store_problems(settings, None, with_race=False) == []
    assert store_problems(settings, {"bucket"}, with_race=True) == []
    warehouse = warehouse_in(s3_server, s3_bucket)
    assert list(Location(warehouse.location, warehouse.store).list()) == []


def test_a_store_in_which_two_writers_win_is_refused(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_check, "race", lambda folder: RaceResult(20, 3, 10, 0))
    (problem,) = store_problems(settings, None, with_race=True)
    assert "3 of 20 races to create a file" in problem and "Do not put tables there" in problem


def test_keys_that_the_store_refuses_are_told_apart_from_a_store_that_does_not_answer(
    settings: Settings, s3_server: S3Server, s3_bucket: str
) -> None:
    key = s3_server.access_key
    s3_server.faults.add(Fault("disconnect", count=None))
    (problem,) = store_problems(settings, None, with_race=False)
    assert "does not answer" in problem
    s3_server.faults.clear()
    s3_server.put_access_key(AccessKey(key.access_key_id, "another"))
    try:
        (problem,) = store_problems(settings, None, with_race=False)
    finally:
        s3_server.put_access_key(key)
    assert "refuses the keys" in problem and key.secret_access_key not in problem
    file = warehouses_file(settings)
    file.write_text(file.read_text().replace(s3_bucket, "none"))
    (problem,) = store_problems(settings, None, with_race=False)
    assert "refuses" in problem and "s3://none" in problem
    assert store_problems(settings, {"folder"}, with_race=True) == []
