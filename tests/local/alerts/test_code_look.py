"""New code that nulls a column is found in tables of both formats, and putting the code back ends it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from tests.support.streams.stand_ins import ORDERS
from tests.support.tables.local_tables import TOPIC, offsets, rows

from lakebound.alerts.code_look import SOURCE, look_at_code
from lakebound.control.code_samples import read_samples
from lakebound.control.findings import Finding, read_source
from lakebound.control.folder import ControlFolder
from lakebound.ledger.entry import Entry, new_commit_id
from lakebound.ledger.sources import Source
from lakebound.settings import Settings, load_settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.places import Places, places_of
from lakebound.tables.table import open_table
from lakebound_spark.batch.targets import Counts, Target, Writer

pytestmark = pytest.mark.local
SECRET = "kept-nowhere"


class Landing:
    """Lands rows by code of a name, each of its applications with an epoch of its own."""

    def __init__(self, spec: TableSpec, at: Places) -> None:
        self.spec, self.at, self.landed, self.epoch = spec, at, 0, 0
        genesis = Entry(kind="genesis", pipeline="orders", epoch=0, commit=new_commit_id())
        open_table(spec, at).create(self.rows(0, 0, False).schema, genesis)

    def rows(self, first: int, end: int, is_bad: bool) -> pa.Table:
        cities = pa.array([None if is_bad or one % 50 == 0 else SECRET for one in range(first, end)], pa.string())
        return rows(first, end).append_column(pa.field("town", pa.string()), cities)

    def run(self, code: str, commits: int, count: int = 100, *, is_bad: bool = False) -> None:
        self.epoch += 1
        writer = Writer("orders", self.epoch, lambda: None, attempts=3, source=Source(hash=code))
        target = Target(open_table(self.spec, self.at), open_table(self.spec, self.at).read_ledger())
        target.commit(writer, {}, Counts(), [], kind="open")
        for _ in range(commits):
            end = self.landed + count
            files = write_data_files(self.rows(self.landed, end, is_bad), target.table.layout(), f"batch-{end}")
            target.commit(writer, offsets(self.landed, end), Counts(read=count, landed=count, rows=count), files)
            self.landed = end


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_column_that_new_code_nulls_is_found_until_the_code_is_put_back(table_format: str, tmp_path: Path) -> None:
    settings: Settings = replace(load_settings(), home=tmp_path / "state", warehouse=tmp_path / "lake")
    spec = PipelineSpec.model_validate(
        {**ORDERS, "topics": [TOPIC], "tables": [{"format": table_format, "name": "shop.orders"}]}
    )
    control = ControlFolder(settings.home, spec.pipeline)
    landing = Landing(spec.tables[0], places_of(settings, spec.warehouse))

    def found() -> tuple[Finding, ...]:
        look_at_code(spec, control, settings)
        looked = read_source(control, SOURCE)
        return looked.findings if looked is not None else ()

    for _ in range(4):
        landing.run("good", 3)
        assert found() == ()
    landing.run("bad", 3, is_bad=True)
    [one] = found()
    assert "column town is null: 100 % (before: 2 %)" in one.what and one.evidence["source"] == "bad"
    samples = read_samples(control)
    assert samples is not None and samples.current is not None and samples.before is not None
    assert sum(part.read for part in samples.before.slices) == 1200 and sum(part.read for part in samples.current.slices) == 300
    assert found() == (one,), "a look without a new commit changes nothing"
    assert sum(part.read for part in read_samples(control).current.slices) == 300  # type: ignore[union-attr]
    landing.run("good", 3)
    assert found() == ()
    written = "".join(path.read_text() for path in control.folder.rglob("*.json"))
    assert SECRET not in written


def test_a_table_that_cannot_be_read_is_left_to_the_doctor(tmp_path: Path) -> None:
    settings: Settings = replace(load_settings(), home=tmp_path / "state", warehouse=tmp_path / "lake")
    spec = PipelineSpec.model_validate({**ORDERS, "topics": [TOPIC], "tables": [{"format": "delta", "name": "shop.orders"}]})
    control, places = ControlFolder(settings.home, spec.pipeline), places_of(settings, spec.warehouse)
    look_at_code(spec, control, settings)
    assert not control.exists(), "there is no table yet"
    landing = Landing(spec.tables[0], places)
    landing.run("good", 1)
    for file in places.delta_path(spec.tables[0]).rglob("*.parquet"):
        file.write_bytes(b"no Parquet")
    look_at_code(spec, control, settings)
    assert read_samples(control) is None and read_source(control, SOURCE) is None
