"""Reference data: the transform's second parameter, in every lane; refreshed between batches, and kept where that fails."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession
from tests.support.catalogs.postgresql import PASSWORD, PostgreSQL
from tests.support.catalogs.shop import SECRET, Shop
from tests.support.tables.value_lanes import LaneWorld, Sent

from lakebound.control.desired import Desired
from lakebound.control.progress import ReferenceProgress
from lakebound.errors import ReferenceRefusedError, TransformRefusedError
from lakebound.landing.rollup_recorder import Lane
from lakebound.landing.run_spec import make_run_spec
from lakebound.ledger.entry import Entry
from lakebound.settings import load_settings
from lakebound.spec.load import load_file
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.places import Places
from lakebound_spark.batch.transform import load_transform, planned_output
from lakebound_spark.check.plan import check
from lakebound_spark.reference.book import ReferenceBook, open_book
from lakebound_spark.reference.refresh import ReferenceWatch
from lakebound_spark.testing import land

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("as_applications_write")]

REPOSITORY = Path(__file__).parents[2]
LANES: tuple[Lane, ...] = ("direct", "driver", "cluster")
SITES = {"device-0": "north", "device-1": "south"}


def pipeline(reference: Mapping[str, Any] | None = None, transform: str = "transforms.located_readings.locate") -> PipelineSpec:
    body = {
        "pipeline": "located",
        "topics": ["orders"],
        "connection": {"bootstrap_servers": "127.0.0.1:1"},
        "value": {"format": "json", "schema": "device_id STRING NOT NULL, value DOUBLE"},
        "freshness": "1s",
        "transform": transform,
        "reference": {"devices": {"format": "delta", "name": "crm.devices", "key": ["device_id"], **(reference or {})}},
        "tables": [{"format": "delta", "name": "iot.located"}],
    }
    return PipelineSpec.model_validate(body)


def devices(sites: Mapping[str, str], calibration: float = 2.0) -> pa.Table:
    rows = [{"device_id": one, "site": site, "room": "r", "calibration": calibration} for one, site in sites.items()]
    return pa.Table.from_pylist(rows)


def write_devices(at: Places, rows: pa.Table) -> None:
    write_deltalake(at.root.path / "delta" / "crm" / "devices", rows, mode="overwrite", schema_mode="overwrite")


class Stream:
    """A pipeline in one lane that does between batches what the stream does."""

    def __init__(
        self, session: SparkSession, folder: Path, way: Lane, at: Places, reference: Mapping[str, Any] | None = None
    ) -> None:
        spec = pipeline(reference)
        self.book = open_book(session, spec, at)
        self.told: dict[str, ReferenceProgress] = {}
        self.watch = ReferenceWatch(session, self.book, self.told.update)
        transform = load_transform(spec, self.book.frames)
        self.world = LaneWorld(session, folder, spec, way, transform, has_transform=True, references=self.book)
        lander = self.world.lander
        lander._writer = replace(lander._writer, references=self.book.versions)
        self.next = 0

    def land(self, *device_ids: str) -> Entry:
        """Land a batch with a reading of each device, and return its entry."""
        if self.book.has_newer:
            self.world.lander.flush()
            self.book.turn()
        values = [json.dumps({"device_id": one, "value": 1.5}).encode() for one in device_ids]
        steps = self.world.land(Sent(self.next, values, [1_700_000_000_000] * len(values)))
        assert ("direct_transform" in steps) is (self.world.way == "direct")
        self.next += len(values)
        entry = self.world.targets[0].table.read_ledger().entry
        assert entry is not None
        return entry

    def look(self) -> ReferenceProgress:
        """Look for a newer version, and return what is told."""
        self.watch.look("devices")
        self.watch.tell()
        return self.told["devices"]

    def sites(self) -> list[tuple[str, str | None, float]]:
        """Return device, site and value of each record, in order."""
        [rows] = self.world.read().tables.values()
        return [(row["device_id"], row["site"], row["value"]) for _, found in sorted(rows.items()) for row in found]


@pytest.fixture
def lake(at: Places, tmp_path: Path) -> Places:
    """Places with a reference folder of the test's own, and the table of devices in its first state."""
    write_devices(at, devices(SITES))
    return at.model_copy(update={"references": tmp_path})


def test_enriched_rows_are_the_same_in_every_lane(session: SparkSession, lake: Places, tmp_path: Path) -> None:
    found, entries = {}, {}
    for way in LANES:
        stream = Stream(session, tmp_path / way, way, lake)
        entry = stream.land("device-1", "device-9", "device-0", "device-1")
        found[way], entries[way] = stream.sites(), entry.references
        stream.world.close()
    located = [("device-1", "south", 3.0), ("device-9", None, 1.5), ("device-0", "north", 3.0), ("device-1", "south", 3.0)]
    assert found == dict.fromkeys(LANES, located)
    version = open_book(session, pipeline(), lake).versions()["devices"]
    assert entries == {way: {"devices": version} for way in LANES}


def test_a_newer_version_is_used_from_the_next_batch_on(session: SparkSession, lake: Places, tmp_path: Path) -> None:
    stream = Stream(session, tmp_path, "direct", lake)
    first = stream.land("device-0")
    write_devices(lake, devices({**SITES, "device-0": "west"}).append_column("added", pa.array([1, 2])))
    told = stream.look()
    assert told.problem is None and stream.book.has_newer
    assert told.version == first.references["devices"], "no batch has used the newer one yet"
    second = stream.land("device-0")
    assert int(second.references["devices"]) == int(first.references["devices"]) + 1
    assert stream.look().version == second.references["devices"]
    assert stream.sites() == [("device-0", "north", 3.0), ("device-0", "west", 3.0)], "a column that came later is left out"
    stream.world.close()


WITH_DOUBLE = pa.concat_tables([devices(SITES), devices({"device-0": "east"})])
WITH_NULL = pa.concat_tables([devices(SITES), pa.table({"site": ["west"]})], promote_options="default")


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (WITH_DOUBLE, "1 rows have the key (device_id) of another row"),
        (WITH_NULL, "1 rows have no value in the key"),
        (devices(SITES).drop_columns("site"), "it lost the columns site"),
        (devices(SITES).set_column(3, "calibration", pa.array(["a", "b"])), "calibration from DOUBLE to STRING"),
    ],
    ids=["doubled", "null", "lost", "changed"],
)
def test_what_cannot_be_used_changes_nothing(
    session: SparkSession, lake: Places, tmp_path: Path, bad: pa.Table, problem: str
) -> None:
    stream = Stream(session, tmp_path, "direct", lake)
    first = stream.land("device-0")
    write_devices(lake, bad)
    told = stream.look()
    assert problem in (told.problem or "") and not stream.book.has_newer
    assert stream.look().problem_since == told.problem_since
    second = stream.land("device-0")
    assert second.references == first.references
    assert stream.sites() == [("device-0", "north", 3.0)] * 2
    write_devices(lake, devices({**SITES, "device-0": "west"}))
    assert stream.look().problem is None
    stream.land("device-0")
    assert stream.sites()[-1] == ("device-0", "west", 3.0)
    stream.world.close()


def test_a_source_that_is_gone_leaves_the_version_in_use(session: SparkSession, lake: Places, tmp_path: Path) -> None:
    stream = Stream(session, tmp_path, "driver", lake)
    folder = lake.root.path / "delta" / "crm" / "devices"
    folder.rename(folder.with_name("away"))
    try:
        told = stream.look()
        assert "there is no Delta table at" in (told.problem or "") and told.checked_at == told.loaded_at
        stream.land("device-1")
        assert stream.sites() == [("device-1", "south", 3.0)]
    finally:
        folder.with_name("away").rename(folder)
    assert stream.look().problem is None
    stream.world.close()


SHOP = """
CREATE TABLE devices
  (device_id text, site varchar(20), room text, calibration double precision, limits numeric, since timestamp);
INSERT INTO devices VALUES ('device-0', 'north', 'r', 2, 0.5, '2024-01-01'), ('device-1', 'south', 'r', 2, NULL, NULL);
"""


def test_a_table_in_postgresql_is_refreshed_and_kept_while_it_cannot_be_used(
    session: SparkSession, at: Places, tmp_path: Path, postgresql: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SECRET, PASSWORD)
    shop = Shop(postgresql)
    shop.run(SHOP)
    stream = Stream(session, tmp_path, "direct", at, shop.reference(name="devices", key=["device_id"]))
    first = stream.land("device-0", "device-1")
    frame = stream.book.frames()["devices"]
    assert [field.dataType.simpleString() for field in frame.schema][3:] == ["double", "decimal(38,18)", "timestamp"]
    assert frame.where("since = TIMESTAMP '2024-01-01 00:00:00'").count() == 1
    shop.run("UPDATE devices SET site = 'west' WHERE device_id = 'device-0'")
    assert stream.look().problem is None
    second = stream.land("device-0")
    assert second.references["devices"].startswith("rows-") and second.references != first.references
    monkeypatch.setenv(SECRET, "another")
    told = [stream.look().problem or ""]
    monkeypatch.setenv(SECRET, PASSWORD)
    with shop.proxy.away():
        told.append(stream.look().problem or "")
    for change in ("INSERT INTO devices VALUES ('device-0')", "ALTER TABLE devices RENAME TO away"):
        shop.run(change)
        told.append(stream.look().problem or "")
        assert stream.land("device-0").references == second.references
    expected = ("refuses the login", "the server is away", "have the key (device_id)", "does not exist")
    assert all(part in problem for part, problem in zip(expected, told, strict=True)) and PASSWORD not in str(told)
    shop.run("ALTER TABLE away RENAME TO devices; DELETE FROM devices WHERE site IS NULL")
    assert stream.look().problem is None and not stream.book.has_newer, "the version in use is the newest again"
    assert [site for _, site, _ in stream.sites()] == ["north", "south", "west", "west", "west"]
    stream.world.close()
    shop.proxy.close()


def files_of(session: SparkSession, at: Places, **reference: Any) -> ReferenceBook:
    return open_book(session, pipeline({"name": None, **reference}), at)


def test_every_format_gives_the_same_rows(session: SparkSession, lake: Places, tmp_path: Path) -> None:
    catalog, rows = open_catalog(lake), devices(SITES)
    catalog.create_namespace_if_not_exists("crm")
    catalog.create_table("crm.devices", rows.schema).append(rows)
    (tmp_path / "parts").mkdir()
    for number in range(2):
        pa.parquet.write_table(rows.slice(number, 1), tmp_path / "parts" / f"{number}.parquet")
    lines = [",".join(map(str, row.values())) for row in rows.to_pylist()]
    (tmp_path / "devices.csv").write_text("\n".join([",".join(rows.column_names), *lines]))
    schema = "device_id STRING, site STRING, room STRING, calibration DOUBLE"
    books = [
        open_book(session, pipeline(), lake),
        open_book(session, pipeline({"format": "iceberg"}), lake),
        files_of(session, lake, format="parquet", path="parts"),
        files_of(session, lake, format="csv", path="devices.csv"),
        files_of(session, lake, format="csv", path="devices.csv", schema=schema),
    ]
    assert [sorted(map(tuple, book.frames()["devices"].collect())) for book in books] == [
        sorted(tuple(row.values()) for row in rows.to_pylist())
    ] * len(books)
    before = books[3].versions()
    (tmp_path / "devices.csv").write_text("\n".join([",".join(rows.column_names), lines[0]]))
    assert files_of(session, lake, format="csv", path="devices.csv").versions() != before


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ({"name": "crm.nowhere"}, "there is no Delta table"),
        ({"key": ["room"]}, "1 rows have the key (room) of another row"),
        ({"key": ["serial"]}, "it has no column serial"),
        ({"name": None, "path": "../outside"}, "is not in the folder"),
        ({"format": "csv", "name": None, "path": "bad.csv", "schema": "device_id STRING, site INT"}, "it cannot be read"),
    ],
)
def test_a_start_and_the_check_refuse_what_cannot_be_used(
    session: SparkSession, lake: Places, tmp_path: Path, reference: dict[str, Any], problem: str
) -> None:
    (tmp_path / "bad.csv").write_text("device_id,site\nd,secret-value")
    spec = pipeline(reference)
    with pytest.raises(ReferenceRefusedError) as error:
        open_book(session, spec, lake)
    assert problem in str(error.value) and "secret-value" not in str(error.value)
    run = make_run_spec(spec, load_settings(), Desired(), "check").model_copy(update={"places": lake})
    [found] = check(session, run, ()).problems
    assert found.keys == ("reference", "devices") and problem in found.what


def test_a_table_that_is_too_large_is_refused_before_it_is_read(
    session: SparkSession, lake: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakebound_spark.reference.rules.MOST_ROWS", 1)
    with pytest.raises(ReferenceRefusedError, match="it has 2 rows, and may have 1"):
        open_book(session, pipeline(), lake)


def test_a_transform_takes_reference_data_where_the_yaml_has_some(session: SparkSession, lake: Places) -> None:
    without = pipeline().model_copy(update={"reference": {}})
    with pytest.raises(TransformRefusedError, match="the YAML has no 'reference'"):
        load_transform(without)
    with pytest.raises(TransformRefusedError, match="no second parameter"):
        load_transform(pipeline(transform="transforms.sensor_readings.clean"))
    with pytest.raises(TransformRefusedError, match="fails on the schema of its input"):
        planned_output(session, pipeline(), load_transform(pipeline(), lambda: {"other": session.range(1)}))


def test_the_example_lands_with_rows_that_a_test_gives(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    spec = load_file(REPOSITORY / "include" / "pipelines" / "located_readings.yaml")

    def reading(device: str) -> str:
        return json.dumps({"device_id": device, "event_time": "2026-01-01T00:00:00Z", "value": 2.0})

    stored = land(spec, [reading("device-0001"), reading("device-9999")])
    assert [(row["site"], row["value"]) for row in stored.rows] == [("north", 2.04), (None, 2.0)]
    given = land(spec, [reading("a")], {"devices": [{"device_id": "a", "site": "s", "room": "r", "calibration": 3.0}]})
    assert [(row["site"], row["value"]) for row in given.rows] == [("s", 6.0)]
