"""warehouses.yaml: what it gives, and that each mistake names its line and field, and never a secret."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakebound.errors import InvalidWarehousesError, UnknownWarehouseError
from lakebound.settings import Settings, load_settings
from lakebound.spec.warehouse import RestCatalogSpec, SqlCatalogSpec
from lakebound.spec.warehouses_file import find_warehouse, load_warehouses
from lakebound.tables.places import places_of

RIGHT = """
warehouses:
  eu:
    location: s3://lake-eu/tables/
    store:
      endpoint: https://store:9000
      access_key_id: {env: LAKEBOUND_SECRET_KEY}
      secret_access_key: {file: store/key}
    catalog:
      type: rest
      uri: https://catalog:8181
      oauth2:
        server_uri: https://login/token
        client_id: lakebound
        client_secret: {env: LAKEBOUND_SECRET_CLIENT}
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "pipelines").mkdir()
    return replace(load_settings({}), home=tmp_path / "home", warehouse=tmp_path / "lake", pipelines=tmp_path / "pipelines")


def write(settings: Settings, text: str) -> None:
    (settings.pipelines.parent / "warehouses.yaml").write_text(text)


def test_without_a_file_tables_lie_on_this_machine(settings: Settings) -> None:
    found = find_warehouse("default", settings)
    assert found.is_local and found.location == str(settings.warehouse)
    assert isinstance(found.catalog, SqlCatalogSpec) and found.catalog.uri == settings.iceberg_catalog_uri
    assert places_of(settings, "default").root.path == settings.warehouse


def test_a_warehouse_is_found_by_its_name(settings: Settings) -> None:
    write(settings, RIGHT)
    assert sorted(load_warehouses(settings)) == ["default", "eu"]
    found = find_warehouse("eu", settings)
    assert found.location == "s3://lake-eu/tables" and not found.is_local
    assert isinstance(found.catalog, RestCatalogSpec) and found.catalog.oauth2 is not None
    assert str(places_of(settings, "eu").root) == "s3://lake-eu/tables"


def test_an_unknown_name_is_refused(settings: Settings) -> None:
    write(settings, RIGHT)
    with pytest.raises(UnknownWarehouseError, match=r"no warehouse 'us' in .*warehouses.yaml; .* default, eu"):
        find_warehouse("us", settings)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("location: s3://lake-eu/tables/", "location: lake", "warehouses.yaml:4: warehouses.eu.location: 'lake' is neither"),
        ("location: s3://lake-eu/tables/", "location: s3://a:b@lake", "warehouses.eu.location"),
        ("    location: s3://lake-eu/tables/\n", "", "warehouses.eu.location: is missing"),
        ("      endpoint: https://store:9000", "      endpoint: store:9000", "warehouses.eu.store.endpoint"),
        ("      endpoint:", "      endpont:", "did you mean 'endpoint'?"),
        ("  eu:", "  EU:", "'EU' must be lower-case"),
        ("      type: rest", "      type: hive", "warehouses.eu.catalog.type: must be sql, rest or glue, not 'hive'"),
        ("location: s3://lake-eu/tables/", "location: /lake", "only for an object store"),
        ("      access_key_id: {env: LAKEBOUND_SECRET_KEY}\n", "", "give both access_key_id and secret_access_key"),
        ("warehouses:", "- warehouses", "must be keys and values"),
    ],
)
def test_a_mistake_names_its_field(settings: Settings, before: str, after: str, said: str) -> None:
    write(settings, RIGHT.replace(before, after) if before != "warehouses:" else "- warehouses\n")
    with pytest.raises(InvalidWarehousesError) as caught:
        load_warehouses(settings)
    assert said in str(caught.value)


@pytest.mark.parametrize("written", ["hunter2", "{hunter2: hunter2}", "{env: LAKEBOUND_SECRET_A, hunter2: x}", "[hunter2]"])
@pytest.mark.parametrize("field", ["{env: LAKEBOUND_SECRET_KEY}", "{file: store/key}", "{env: LAKEBOUND_SECRET_CLIENT}"])
def test_a_secret_in_the_file_is_refused_and_not_repeated(settings: Settings, field: str, written: str) -> None:
    write(settings, RIGHT.replace(field, written))
    with pytest.raises(InvalidWarehousesError) as caught:
        load_warehouses(settings)
    assert "must say where the secret is stored" in str(caught.value) and "hunter2" not in str(caught.value)


def test_the_application_gets_the_variables_of_its_warehouse_alone(settings: Settings) -> None:
    write(settings, RIGHT)
    eu = find_warehouse("eu", settings)
    assert eu.secret_variables == ("LAKEBOUND_SECRET_KEY", "LAKEBOUND_SECRET_CLIENT") and eu.own_variables == ()
    assert find_warehouse("default", settings).secret_variables == () == find_warehouse("default", settings).own_variables
    keyless = RIGHT.partition("      access_key_id")[0] + RIGHT[RIGHT.index("    catalog:") :]
    write(settings, keyless)
    assert "AWS_WEB_IDENTITY_TOKEN_FILE" in find_warehouse("eu", settings).own_variables
