"""`lakebound new` finds the registry that has the schemas of a topic; one that does not answer is told, and stops nothing."""

from __future__ import annotations

import json

import pytest
from tests.support.registry.said_answers import Said, answering

from lakebound.inspection.registry_search import search_registries
from lakebound.spec.draft.wire_format import WireFormat
from lakebound.spec.registry import RegistrySpec

ORDER = {"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "id", "type": "long"}]}
WIRE = WireFormat(3, (7, 9), {7: b"\x02", 9: b"\x02"})
NOT_FOUND = Said(b'{"error_code": 40403, "message": "not found"}', 404)


def said(body: object) -> Said:
    return Said(json.dumps(body).encode())


def registry(url: str) -> RegistrySpec:
    return RegistrySpec(url=url, request_timeout_seconds=5)


def test_of_several_registries_with_the_same_ids_the_one_with_the_topics_subject_is_meant() -> None:
    def say(path: str) -> Said:
        where, _, rest = path.lstrip("/").partition("/")
        if rest == "schemas/ids/7/versions":
            return said([{"subject": "orders-value" if where == "right" else "other", "version": 1}] * 2)
        if rest in ("schemas/ids/7", "schemas/ids/9") and (where, rest[-1]) != ("right", "9"):
            return said({"schema": json.dumps(ORDER)})
        return NOT_FOUND

    with answering(say) as server:
        known = {name: registry(f"{server.url}/{name}") for name in ("first", "right")}
        found = search_registries("orders", WIRE, known | {"away": registry("http://127.0.0.1:1")})
    assert found.proposal is not None
    assert found.proposal.fields == {"format": "avro", "registry": "right"} and found.proposal.subject == "orders-value"
    assert "does not have 9" in found.proposal.others[0] and found.columns == (("id", "BIGINT"),)
    assert found.problems == (), "a registry that is away is of no interest, where another one has the schemas"


def test_a_registry_without_the_ids_proposes_nothing() -> None:
    with answering(lambda path: NOT_FOUND) as server:
        found = search_registries("orders", WIRE, {"company": registry(server.url)})
    assert found.proposal is None and found.problems == () and search_registries("orders", WIRE, {}).proposal is None
    away = search_registries("orders", WIRE, {"away": registry("http://127.0.0.1:1")})
    assert away.proposal is None and [problem.partition(":")[0] for problem in away.problems] == ["registry away"]


@pytest.mark.parametrize(("has_usual", "told"), [(True, False), (False, True)])
def test_a_registry_that_cannot_be_asked_for_subjects_is_asked_for_the_usual_one(has_usual: bool, told: bool) -> None:
    def say(path: str) -> Said:
        if path == "/subjects/orders-value/versions":
            return said([1]) if has_usual else NOT_FOUND
        return said({"schema": json.dumps(ORDER)}) if path.count("/") == 3 else Said(b"<html>", 404)

    with answering(say) as server:
        found = search_registries("orders", WIRE, {"company": registry(server.url)})
    assert found.proposal is not None and ("compare the subject" in found.proposal.told) is told


def test_a_schema_without_columns_is_proposed_with_the_reason() -> None:
    empty = said({"schema": '{"type": "record", "name": "Empty", "fields": []}'})
    with answering(lambda path: said([]) if path.endswith("versions") else empty) as server:
        found = search_registries("orders", WIRE, {"company": registry(server.url)})
    assert found.columns == () and "cannot be landed" in found.problems[-1]
