"""A Delta table whose log cannot be read any more is named with its last version, and mended as the runbook says."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from tests.support.tables.local_tables import landed_offsets, lander, make_table

from lakebound.errors import TableUnreadableError
from lakebound.spec.table import TableSpec
from lakebound.tables.contents import contents_of
from lakebound.tables.places import Places
from lakebound.tables.table import open_table

RUNBOOK = Path(__file__).parents[3] / "include" / "runbooks" / "table-unreadable.md"
SPEC = TableSpec(format="delta", name="shop.orders", partition_by=("city",))
LAST_GOOD = 3


def _another_partition(commit: Path) -> None:
    """What an edit of partition_by once made of a commit."""
    commit.write_text(commit.read_text().replace('"partitionValues":{"city"', '"partitionValues":{"town"'))


def _torn(commit: Path) -> None:
    commit.write_text(commit.read_text()[:100])


def _no_schema(commit: Path) -> None:
    metadata = {"id": "x", "format": {"provider": "parquet", "options": {}}, "schemaString": "{}", "partitionColumns": []}
    commit.write_text(commit.read_text() + json.dumps({"metaData": {**metadata, "configuration": {}}}) + "\n")


@pytest.mark.parametrize("damage", [_another_partition, _torn, _no_schema])
def test_a_log_that_cannot_be_read_is_mended_from_its_earlier_versions(at: Places, damage: Callable[[Path], None]) -> None:
    make_table(SPEC, at)
    app = lander(SPEC, at)
    app.open()
    for start in range(0, 40, 10):
        app.land(start, start + 10)
    folder = at.delta_path(SPEC)
    damage(folder / "_delta_log" / f"{LAST_GOOD + 1:020d}.json")
    with pytest.raises((DeltaError, ValueError)):
        DeltaTable(str(folder)).to_pyarrow_table()
    looks: list[Callable[[], object]] = [
        lambda: open_table(SPEC, at).read_ledger(),
        lambda: open_table(SPEC, at).scan_kafka(),
        lambda: contents_of(SPEC, at).size(),
    ]
    for look in looks:
        with pytest.raises(TableUnreadableError, match=f"the last readable version is {LAST_GOOD}") as told:
            look()
        assert told.value.last_readable == LAST_GOOD

    (commands,) = re.findall(r"```bash\n(.*?)```", RUNBOOK.read_text(), re.DOTALL)
    script = commands.replace("FOLDER", str(folder)).replace("VERSION", str(LAST_GOOD))
    subprocess.run(["bash", "-euc", script], check=True)
    again = lander(SPEC, at)
    assert again.view.version == str(LAST_GOOD)
    assert landed_offsets(again.table) == list(range(20))
    again.land(20, 40)
    rows = DeltaTable(str(folder)).to_pyarrow_table()
    assert sorted(place["offset"] for place in rows["_kafka"].to_pylist()) == list(range(40))
