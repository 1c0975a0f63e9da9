"""What is known of subjects: what the registry says, what is kept with the state, of each by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support.registry.said_answers import Said, answering

from lakebound.control.folder import ControlFolder
from lakebound.errors import RegistryUnavailableError
from lakebound.formats.schemas import SchemaId
from lakebound.formats.versions import Version
from lakebound.landing.registry_subjects import RegistrySubjects
from lakebound.spec.registry import RegistrySpec

LONG, TEXT, BYTES = '"long"', '"string"', '"bytes"'


class Registry:
    """A registry: ids and texts of each subject."""

    def __init__(self) -> None:
        self.subjects: dict[str, list[tuple[int, str]]] = {}
        self.is_away = False

    def __call__(self, path: str) -> Said:
        if self.is_away:
            return Said(b"no", status=503)
        parts = path.split("?")[0].split("/")
        subject = self.subjects.get(parts[-2] if parts[-1] == "versions" else parts[-3], [])
        if not subject:
            return Said(b'{"error_code": 40401, "message": "no subject"}', status=404)
        if parts[-1] == "versions":
            return Said(json.dumps([*range(1, len(subject) + 1)]).encode())
        number = int(parts[-1])
        found, text = subject[number - 1]
        return Said(json.dumps({"subject": "s", "version": number, "id": found, "schema": text}).encode())


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def url(registry: Registry) -> Iterator[str]:
    with answering(registry) as server:
        yield server.url


def subjects_at(url: str, folder: Path | None) -> RegistrySubjects:
    control = None if folder is None else ControlFolder(folder, "orders", None)
    return RegistrySubjects("shop", RegistrySpec.model_validate({"url": url}), control)


def used(subjects: RegistrySubjects, names: list[str]) -> Mapping[str, Sequence[Version]]:
    """Return versions, as a pipeline whose tables follow them uses them."""
    versions = subjects.versions(names)
    subjects.keep(versions)
    return versions


def told(versions: Mapping[str, Sequence[Version]]) -> dict[str, list[tuple[SchemaId, str]]]:
    """Return the id and text of each version that can be used, the oldest first."""
    found: dict[str, list[tuple[SchemaId, str]]] = {}
    for subject, every in versions.items():
        ordered = sorted(every, key=lambda one: one.number)
        found[subject] = [(one.ids[0], one.schema.text) for one in ordered if one.schema is not None and one.problem is None]
    return found


BOTH: Any = {"orders-key": [(1, LONG)], "orders-value": [(2, TEXT), (3, LONG)]}


def test_while_the_registry_is_away_versions_keep_their_order(registry: Registry, url: str, tmp_path: Path) -> None:
    """A newer version has a lower id where another subject had its schema before."""
    registry.subjects = {"orders-value": [(9, LONG), (5, TEXT), (7, BYTES)]}
    before = told(used(subjects_at(url, tmp_path), ["orders-value"]))
    registry.is_away = True
    assert told(subjects_at(url, tmp_path).versions(["orders-value"])) == before == registry.subjects


def test_while_the_registry_is_away_each_subject_has_what_was_kept_of_it(registry: Registry, url: str, tmp_path: Path) -> None:
    registry.subjects = {**BOTH, "users-key": BOTH["orders-key"]}
    assert told(used(subjects_at(url, tmp_path), ["orders-key"])) == {"orders-key": BOTH["orders-key"]}
    assert told(used(subjects_at(url, tmp_path), ["orders-value"])) == {"orders-value": BOTH["orders-value"]}
    registry.is_away = True
    subjects = subjects_at(url, tmp_path)
    assert told(subjects.versions(["orders-value", "orders-key"])) == BOTH
    for unknown in (["users-key"], ["orders-key", "users-key"]):
        with pytest.raises(RegistryUnavailableError):
            subjects.versions(unknown)
    with pytest.raises(RegistryUnavailableError):
        subjects_at(url, None).versions(["orders-key"])


def test_an_id_that_means_another_schema_is_no_longer_read(registry: Registry, url: str, tmp_path: Path) -> None:
    registry.subjects = {"orders-value": [(2, TEXT), (3, LONG)]}
    used(subjects_at(url, tmp_path), ["orders-value"])
    registry.subjects = {"orders-value": [(2, ' "string" '), (3, BYTES)]}
    for _ in range(2):
        found = subjects_at(url, tmp_path).versions(["orders-value"])["orders-value"]
        assert [one.ids for one in found] == [(), (2,), (3,)] and found[1].problem is None, "another layout is the same schema"
        assert found[0].schema is not None and found[0].schema.text == LONG, "it still gives the columns"
        problem = found[2].problem
        assert problem is not None and "has another schema by the id 3" in problem
        assert "Follow the runbook schema-id-reused" in problem
    registry.subjects = {"orders-value": [(2, TEXT), (3, LONG)]}
    assert told(subjects_at(url, tmp_path).versions(["orders-value"])) == {"orders-value": [(2, TEXT), (3, LONG)]}
