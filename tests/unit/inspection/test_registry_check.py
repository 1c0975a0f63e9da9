"""`lakebound check` reads registries.yaml, and asks each registry."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.support.registry.said_answers import Said, answering
from tests.support.streams.command_line import lakebound
from tests.support.streams.pipeline_files import RIGHT, settings, write

from lakebound.inspection.registry_check import registry_problems
from lakebound.settings import Settings
from lakebound.spec.registries_file import registries_file

__all__ = ["settings"]


def write_registries(settings: Settings, **registries: object) -> Path:
    file = settings.pipelines.parent / "registries.yaml"
    file.write_text(yaml.safe_dump({"registries": registries}))
    return file


def test_without_a_file_there_is_nothing_to_ask(settings: Settings) -> None:
    assert registry_problems(registries_file(settings), None, asks=True) == []


def test_each_registry_is_asked_and_each_problem_is_told(settings: Settings) -> None:
    def say(path: str) -> Said:
        return Said(b'["AVRO"]') if path == "/right/schemas/types" else Said(b"", 401)

    with answering(say) as server:
        login = {"url": f"{server.url}/wrong", "request_timeout_seconds": 5}
        away = {"url": "http://127.0.0.1:1", "request_timeout_seconds": 5}
        file = write_registries(settings, right={"url": f"{server.url}/right"}, login=login, away=away)
        found = sorted(registry_problems(file, None, asks=True))
        assert len(found) == 2
        assert found[0].startswith(f"{file}: registries.away: no answer from the schema registry")
        assert found[1].startswith(f"{file}: registries.login: no login to the schema registry")
        assert registry_problems(file, ["right"], asks=True) == [] == registry_problems(file, None, asks=False)


def test_a_secret_that_is_not_there_is_named_once_with_its_folder(settings: Settings) -> None:
    login = {"url": "http://127.0.0.1:1", "username": "lakebound", "password": {"file": "nothere"}}
    file = write_registries(settings, company=login)
    (found,) = registry_problems(file, None, asks=True)
    told = f"{file}: registries.company.password: file nothere in the folder /run/secrets/registries is empty or missing"
    assert found.startswith(told)


def test_check_names_a_mistake_in_the_file(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEBOUND_PIPELINES", str(settings.pipelines))
    write(settings, RIGHT)
    write_registries(settings, company={"url": "registry"})
    mistake = "registries.yaml:3: registries.company.url: must be an address"
    for asked in ((), (str(settings.pipelines.parent / "registries.yaml"),)):
        assert mistake in lakebound("check", *asked, "--static", code=1).output


def test_check_takes_the_file(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEBOUND_PIPELINES", str(settings.pipelines))
    (settings.pipelines / "wrong.yaml").write_text("pipeline: wrong\n")
    with answering(lambda _: Said(b'["AVRO"]')) as server:
        file = write_registries(settings, company={"url": server.url})
        assert lakebound("check", str(file)).stdout == f"{file}: valid\n"
    assert "no answer from the schema registry" in lakebound("check", str(file), code=1).output
    file.unlink()
    assert "this file does not exist" in lakebound("check", str(file), "--static", code=1).output
