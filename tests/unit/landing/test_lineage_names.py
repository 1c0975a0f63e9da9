"""What OpenLineage calls topics and tables."""

from __future__ import annotations

from pathlib import Path
from string import ascii_letters, digits

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openlineage.client.naming.dataset import S3, Kafka, LocalFileSystem

from lakebound.landing.lineage_names import catalog_name, folder_name, topic_name
from lakebound.spec.table import TableSpec
from lakebound.spec.warehouse import GlueCatalogSpec, RestCatalogSpec, SqlCatalogSpec, local_warehouse

WORD = st.text(alphabet=ascii_letters + digits + "-_", min_size=1, max_size=12)
PATH = st.lists(WORD, min_size=1, max_size=4).map("/".join)
ORDERS = TableSpec(format="iceberg", name="sales.orders")


@pytest.mark.parametrize(
    ("servers", "namespace"),
    [
        ("kafka:9092", "kafka://kafka:9092"),
        ("b-1.example.com:9094,b-2.example.com:9094", "kafka://b-1.example.com:9094"),
        (" , kafka ", "kafka://kafka:9092"),
        ("[::1]:19092", "kafka://[::1]:19092"),
        ("SASL_SSL://kafka:9096", "kafka://kafka:9096"),
    ],
)
def test_a_topic_is_named_by_its_first_broker(servers: str, namespace: str) -> None:
    assert topic_name(servers, "sales.orders") == (namespace, "sales.orders")


def test_a_topic_without_a_broker_has_no_name() -> None:
    with pytest.raises(ValueError, match="names no broker"):
        topic_name(" , ", "orders")


@settings(max_examples=25)
@given(host=WORD, port=st.integers(1, 65535), others=st.lists(WORD, max_size=2), topic=WORD)
def test_topics_are_named_as_openlineage_names_them(host: str, port: int, others: list[str], topic: str) -> None:
    servers = ",".join([f"{host}:{port}", *others])
    theirs = Kafka(host, str(port), topic)
    assert topic_name(servers, topic) == (theirs.get_namespace(), theirs.get_name())


@settings(max_examples=25)
@given(bucket=WORD, key=PATH, login=st.sampled_from(["", "key@", "key:s3cret@"]), end=st.sampled_from(["", "/"]))
def test_folders_in_a_bucket_are_named_as_openlineage_names_them(bucket: str, key: str, login: str, end: str) -> None:
    theirs = S3(bucket, key)
    assert folder_name(f"s3://{login}{bucket}/{key}{end}") == (theirs.get_namespace(), theirs.get_name())


@settings(max_examples=25)
@given(path=PATH, scheme=st.sampled_from(["", "file://", "file:"]), end=st.sampled_from(["", "/"]))
def test_folders_of_a_machine_are_named_as_openlineage_names_them(path: str, scheme: str, end: str) -> None:
    theirs = LocalFileSystem(f"/{path}")
    assert folder_name(f"{scheme}/{path}{end}") == (theirs.get_namespace(), theirs.get_name())


@pytest.mark.parametrize("address", ["", "tables/orders", "s3:///orders"])
def test_an_address_that_is_no_place_has_no_name(address: str) -> None:
    with pytest.raises(ValueError, match="address of a table"):
        folder_name(address)


def test_a_table_is_also_known_by_its_catalog_without_the_login(tmp_path: Path) -> None:
    sqlite = local_warehouse(tmp_path).catalog
    assert sqlite is not None
    assert catalog_name(sqlite, ORDERS) == (f"sqlite:///{tmp_path}/iceberg/catalog.db", "sales.orders")
    postgresql = SqlCatalogSpec(type="sql", uri="postgresql://db:5432/iceberg?sslmode=require")
    assert catalog_name(postgresql, ORDERS) == ("postgresql://db:5432/iceberg", "sales.orders")
    rest = RestCatalogSpec(type="rest", uri="https://me:s3cret@catalog.example.com/api/?token=s3cret#s3cret")
    assert catalog_name(rest, ORDERS) == ("https://catalog.example.com/api", "sales.orders")
    glue = GlueCatalogSpec(type="glue", region="eu-west-1")
    assert catalog_name(glue, ORDERS) == ("arn:aws:glue:eu-west-1", "table/sales/orders")
