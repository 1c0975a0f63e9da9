"""The settings on the page of catalogs are read as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lakebound.spec.warehouse import GlueCatalogSpec, RestCatalogSpec, SqlCatalogSpec
from lakebound.spec.warehouses_file import WarehousesSpec
from lakebound.spec.yaml_source import read_yaml

PAGE = Path(__file__).parents[3] / "docs/how-to/catalogs.md"
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def read(example: str, folder: Path) -> WarehousesSpec:
    file = folder / "warehouses.yaml"
    file.write_text(example)
    return WarehousesSpec.model_validate(read_yaml(file).root)


def test_each_example_is_of_another_catalog(tmp_path: Path) -> None:
    found = [type(read(example, tmp_path).warehouses["default"].catalog) for example in EXAMPLES]
    assert found == [SqlCatalogSpec, RestCatalogSpec, GlueCatalogSpec]


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("postgresql://me:secret@host/lake", "the address must not contain user and password"),
        ("postgresql://host/lake?password=secret", "the address must not contain user and password"),
        ("mysql://host/lake", "'mysql' is not a database for a catalog"),
    ],
)
def test_an_address_with_a_password_or_of_another_database_is_refused(uri: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        SqlCatalogSpec(type="sql", uri=uri)
