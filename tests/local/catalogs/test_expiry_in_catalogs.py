"""Snapshots expire by each catalog's own means, and what only they needed is deleted wherever it lies."""

from __future__ import annotations

import pytest
from pyiceberg.exceptions import CommitFailedException
from tests.support.catalogs.installations import Installation
from tests.support.tables.local_tables import PIPELINE, Lander, landed_offsets, lander
from tests.support.tables.restoring import three_batches

from lakebound.control.folder import ControlFolder
from lakebound.control.turns import AskForTurn
from lakebound.operations.maintenance.iceberg.expiry import expire
from lakebound.operations.maintenance.past_reading import read_past
from lakebound.operations.maintenance.steps import ExpireSnapshots
from lakebound.spec.table import TableSpec
from lakebound.tables.iceberg.metadata import read_table
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.iceberg.rest import RestLedgerCatalog
from lakebound.tables.table import open_table

TABLE = "shop.orders"


@pytest.fixture
def app(installation: Installation, spec: TableSpec) -> Lander:
    return three_batches(spec, installation.at)


def oldest(installation: Installation, count: int) -> list[int]:
    return [one.snapshot_id for one in installation.plain().load_table(TABLE).snapshots()][:count]


def test_old_snapshots_expire_and_their_lists_are_deleted(installation: Installation, app: Lander, spec: TableSpec) -> None:
    plain = installation.plain().load_table(TABLE)
    doomed = oldest(installation, 2)
    lists = [one.manifest_list for one in plain.snapshots()[:2]]
    assert all(installation.at.file_at(one).exists() for one in lists)
    step = ExpireSnapshots(table=spec.id, reason="they are old", snapshot_ids=tuple(doomed))
    done = expire(spec, step, installation.at, AskForTurn(ControlFolder(installation.at.home, PIPELINE), spec.id))
    assert (done.commits, done.files_before, done.files_after) == (1, 4, 2)
    kept = installation.plain().load_table(TABLE)
    assert [one.snapshot_id for one in kept.snapshots()] == [one.snapshot_id for one in plain.snapshots()[2:]]
    assert not any(installation.at.file_at(one).exists() for one in lists)
    assert installation.offsets(TABLE) == list(range(30))
    past = read_past(spec, installation.at, [])
    assert past is not None and len(past.versions) == 2
    app.land(30, 40)
    assert landed_offsets(open_table(spec, installation.at)) == list(range(40))
    assert lander(spec, installation.at).view == app.view


def test_an_expiry_beside_a_commit_is_refused(installation: Installation, app: Lander, spec: TableSpec) -> None:
    catalog = open_catalog(installation.at)
    if not isinstance(catalog, RestLedgerCatalog):
        pytest.skip("a SQL catalog compares the metadata's address")
    found = read_table(catalog, spec, installation.at)
    assert found is not None
    doomed = oldest(installation, 1)
    app.land(30, 40)
    with pytest.raises(CommitFailedException):
        catalog.remove_snapshots(("shop", "orders"), found[1], doomed)
    assert oldest(installation, 1) == doomed
