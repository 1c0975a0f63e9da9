"""The login at a REST catalog: no error tells a token, not even one that cannot be sent."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from lakebound.errors import CatalogRefusedError, UnusableSecretError
from lakebound.redaction import redacted
from lakebound.spec.connection import SecretRef
from lakebound.spec.warehouse import OAuth2Spec, RestCatalogSpec
from lakebound.tables.iceberg import rest_session
from lakebound.tables.iceberg.rest_session import Login

URI = "http://127.0.0.1:1"
SECRET = SecretRef(env="LAKEBOUND_SECRET_CATALOG")


@pytest.mark.parametrize("token", ["hun\nter2", "hun\tter2", "hunter2é"])
def test_a_token_that_cannot_be_sent_is_refused_by_its_field(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setenv("LAKEBOUND_SECRET_CATALOG", token)
    with pytest.raises(UnusableSecretError) as caught:
        Login(RestCatalogSpec(type="rest", uri=URI, token=SECRET)).header()
    told = redacted(caught.value)
    assert "catalog.token" in told and "hun" not in told and "ter2" not in told


def test_what_stands_around_a_token_is_no_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEBOUND_SECRET_CATALOG", " hun ter2\n")
    assert Login(RestCatalogSpec(type="rest", uri=URI, token=SECRET)).header() == "Bearer hun ter2"


@pytest.mark.parametrize("token", ["hun\nter2", "hunter2\n", "", "hunter2é"])
def test_a_token_of_a_server_that_cannot_be_sent_is_none(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setenv("LAKEBOUND_SECRET_CATALOG", "secret")
    answer = SimpleNamespace(status_code=200, ok=True, content=json.dumps({"access_token": token}).encode())
    monkeypatch.setattr(rest_session.requests, "post", lambda *_, **__: answer)
    oauth2 = OAuth2Spec(server_uri=URI, client_id="ada", client_secret=SECRET)
    with pytest.raises(CatalogRefusedError, match="the answer holds no token") as caught:
        Login(RestCatalogSpec(type="rest", uri=URI, oauth2=oauth2)).header()
    assert "ter2" not in redacted(caught.value)
