"""A version of a table in a bucket is gone when its files are, not when the store does not answer or refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.manifest import clear_manifest_cache
from tests.support.catalogs.installations import Installation, in_rest, store_on
from tests.support.s3.faults import Fault, slow_down
from tests.support.s3.running import S3Server
from tests.support.tables.restoring import three_batches, version_of

from lakebound.spec.table import TableSpec
from lakebound.storage import location, options
from lakebound.storage.location import delete_all
from lakebound.tables.iceberg.open import _open_server
from lakebound.tables.table import Table, VersionGoneError, open_table

MANIFESTS = "*.avro"


@pytest.fixture
def installation(s3_server: S3Server, tmp_path: Path) -> Iterator[Installation]:
    """A REST catalog, tables in a bucket, and clients that do not ask again by themselves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(options, "RETRIES", 0)
        location._open_bucket.cache_clear()
        made = in_rest(tmp_path, store_on(s3_server), patch)
        yield made
        made.close()
    location._open_bucket.cache_clear()


@pytest.fixture
def table(installation: Installation, spec: TableSpec) -> Table:
    """A table of three batches, as a process sees it that has read none of its manifests."""
    three_batches(spec, installation.at)
    _open_server.cache_clear()  # and with the catalog the files that it has kept since it wrote them
    clear_manifest_cache()
    return open_table(spec, installation.at)


@pytest.mark.parametrize(
    "fault",
    [
        slow_down(methods=("GET",), key=MANIFESTS, count=None),
        Fault("status", status=403, code="AccessDenied", methods=("GET",), key=MANIFESTS, count=None),
        Fault("status", status=400, code="ExpiredToken", methods=("GET",), key=MANIFESTS, count=None),
    ],
    ids=lambda fault: fault.code,
)
def test_a_store_that_does_not_answer_takes_no_version_away(table: Table, s3_server: S3Server, fault: Fault) -> None:
    old = version_of(table, 10).version
    number = s3_server.faults.add(fault)
    with pytest.raises((ConnectionError, PermissionError)):
        table.look_back(old)
    assert s3_server.faults.hits(number)
    s3_server.faults.clear()
    assert table.look_back(old).rows == 10


def test_a_version_whose_manifests_are_deleted_is_gone(table: Table) -> None:
    old = version_of(table, 10).version
    metadata = table.layout().folder.parent / "metadata"
    delete_all([file for file, _ in metadata.list() if file.name.endswith(".avro")])
    with pytest.raises(VersionGoneError, match="its manifests cannot be read"):
        table.look_back(old)
