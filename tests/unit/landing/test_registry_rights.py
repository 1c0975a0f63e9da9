"""A registry whose user may not read everything: what is forbidden is refused alone, and no stream ends."""

from __future__ import annotations

import json
from collections.abc import Collection
from itertools import combinations
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.support.registry.named_schemas import ask_for
from tests.support.registry.said_answers import Said, Seen, answering_requests
from tests.support.streams.long_form import LONG_FORM

from lakebound.control.schemas_in_use import told_schemas
from lakebound.errors import RegistryForbiddenError
from lakebound.landing.read_schemas import SchemaBook, SchemaRefusedError
from lakebound.landing.registry_subjects import RegistrySubjects
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.registry import RegistrySpec
from lakebound.spec.value import SchemaValueSpec

FORBIDDEN = Said(b'{"error_code": 40301, "message": "User is denied operation Read"}', 403)
MISSING = Said(b'{"error_code": 40401, "message": "not found"}', 404)
IMPORTED = json.dumps({"type": "record", "name": "Pay", "fields": [{"name": "p", "type": ["null", "long"], "default": None}]})
IMPORT = [{"name": "Pay", "subject": "payments-value", "version": 1}]
VERSION_1, VERSION_2, VERSION_3 = (f"/subjects/orders-value/versions/{number}" for number in (1, 2, 3))
PAYMENTS, OTHERS_ID, OWN_ID = "/subjects/payments-value/versions/1", "/schemas/ids/77", "/schemas/ids/3"
CONFIGS = "/config"
PATHS = (VERSION_1, VERSION_2, VERSION_3, PAYMENTS, OTHERS_ID, OWN_ID, CONFIGS)


def order(name: str, kind: object = "long") -> str:
    fields = [{"name": "a", "type": ["null", "long"], "default": None}, {"name": name, "type": ["null", kind], "default": None}]
    return json.dumps({"type": "record", "name": "Order", "fields": fields})


SCHEMAS: dict[int, dict[str, Any]] = {
    1: {"schema": order("b")},
    2: {"schema": order("pay", "Pay"), "references": IMPORT},
    3: {"schema": order("c")},
}


def said(content: object) -> Said:
    return Said(json.dumps(content).encode())


def answer(request: Seen, forbidden: Collection[str]) -> Said:
    """Answer as the registry of three versions, of which the second imports another subject."""
    path = urlsplit(request.path).path
    number = "3" if path.endswith("latest") else path.rpartition("/")[2]
    if path.replace("latest", "3").startswith(tuple(forbidden)):
        return FORBIDDEN
    if path == "/subjects/orders-value/versions":
        return said([*SCHEMAS])
    if path == PAYMENTS:
        return said({"subject": "payments-value", "version": 1, "id": 50, "schema": IMPORTED})
    if path.startswith(CONFIGS):
        return said({"compatibilityLevel": "BACKWARD"})
    if number.isdigit() and int(number) in SCHEMAS:
        return said({"subject": "orders-value", "version": int(number), "id": int(number), **SCHEMAS[int(number)]})
    return said({"schema": IMPORTED}) if path == OTHERS_ID else MISSING


def book_of(url: str) -> SchemaBook:
    body: dict[str, Any] = {"pipeline": "orders", "topics": ["orders"], "freshness": "1s"}
    body |= {"connection": {"bootstrap_servers": "nowhere:9092"}, "value": {"format": "avro", "registry": "shop"}}
    body |= {"tables": [{"format": "delta", "name": "orders"}]}
    subjects = RegistrySubjects("shop", RegistrySpec.model_validate({"url": url}), None)
    return SchemaBook(PipelineSpec.model_validate(body), {}, {"value": subjects}, learns=True)


CHOICES = [some for count in (range(len(PATHS) + 1) if LONG_FORM else (0, 1, 2)) for some in combinations(PATHS, count)]


def test_what_may_not_be_read_is_refused_alone() -> None:
    forbidden: Collection[str] = ()
    seen = 0
    with answering_requests(lambda request: answer(request, forbidden)) as server:
        for forbidden in CHOICES:
            gone = {1: VERSION_1 in forbidden, 2: {VERSION_2, PAYMENTS} & {*forbidden}, 3: VERSION_3 in forbidden}
            left = {one for one, is_gone in gone.items() if not is_gone}
            book = book_of(server.url)
            if not left:
                with pytest.raises(SchemaRefusedError, match=r"not (allow|let) its user"):
                    _ = book.spec
                continue
            _ = book.spec
            book.look()
            ask_for(book, {"value": {1, 2, 3, 77}})
            value = book.spec.value
            assert isinstance(value, SchemaValueSpec) and value.read.known is not None
            assert {one for one, _ in value.read.known.writers} == left, forbidden
            refused = dict(value.read.known.refused)
            assert ("does not allow its user to read schema 77" in refused[77]) == (OTHERS_ID in forbidden), forbidden
            told = " ".join(told_schemas(book.in_use()))
            assert ("compatibility not known" in told) == (CONFIGS in forbidden) and "compatibility" in told
            seen += 1
    assert seen > len(CHOICES) / 2


def test_a_subject_that_may_not_be_read_at_all_needs_a_person() -> None:
    forbidden: list[str] = []
    with answering_requests(lambda request: answer(request, forbidden)) as server:
        book = book_of(server.url)
        _ = book.spec
        forbidden += ["/subjects", "/schemas"]
        with pytest.raises(RegistryForbiddenError, match="subject 'orders-value'"):
            ask_for(book, {"value": {99}})
        with pytest.raises(RegistryForbiddenError, match="subject 'orders-value'"):
            _ = book_of(server.url).spec


@pytest.mark.parametrize("why", [FORBIDDEN, MISSING])
def test_a_version_whose_id_may_not_be_asked_for_is_read_when_a_record_names_it(why: Said) -> None:
    """Rights may be by subject, and an id may belong to a context, so that it is none by itself."""
    listed = [1, 2]

    def by_version(request: Seen) -> Said:
        path = urlsplit(request.path).path
        if path == "/subjects/orders-value/versions":
            return said(listed)
        return why if path.startswith("/schemas/ids/") else answer(request, ())

    with answering_requests(by_version) as server:
        book = book_of(server.url)
        _ = book.spec
        listed.append(3)
        ask_for(book, {"value": {3, 77}})
        value = book.spec.value
        assert isinstance(value, SchemaValueSpec) and value.read.known is not None
        assert {one for one, _ in value.read.known.writers} == {1, 2, 3}
        assert [*dict(value.read.known.refused)] == [77]
