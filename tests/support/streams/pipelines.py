"""Pipelines for tests: specs, places of their own, and the final check of what landed."""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pyiceberg.catalog import Catalog

from lakebound.control.desired import Desired, RunBound
from lakebound.control.folder import ControlFolder
from lakebound.control.lease import lease_is_live, read_lease
from lakebound.inspection.proof.collect import prove
from lakebound.landing.run_spec import RunSpec, make_run_spec
from lakebound.settings import Settings, load_settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places, places_of
from lakebound.tables.table import open_table
from tests.oracle import (
    Judgement,
    judge_quarantine,
    judge_table,
    quarantine_rows,
    read_delta,
    read_iceberg,
    table_rows,
)
from tests.support.kafka.journal import Journal
from tests.support.kafka.producing import EVENT_SCHEMA
from tests.support.streams.long_form import LONG_FORM

REPOSITORY = Path(__file__).parents[3]
TAG_ROWS = "transforms.landing_transforms.tag_rows"
"""The transform of tests: in the applications' folder that a pipeline gets which names it."""
_OF_TESTS = "transforms.landing_transforms."
LANES = ("driver", "cluster")
Lane = Literal["driver", "cluster", "direct"]
"""``direct``: the driver lane, where the driver also reads and decodes; ``driver``: where Spark does."""
ANY_LANE: Lane = "driver" if LONG_FORM else "direct"
"""Of a test whose subject is no lane: starts and batches cost less where the driver reads, and so a user has it by default."""
_MAX_ROWS: dict[str, int] = {"driver": 10_000_000, "direct": 10_000_000, "cluster": 0}
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Pipeline:
    """A pipeline, and the machine-local places that it uses in one test."""

    spec: PipelineSpec
    settings: Settings
    until: RunBound | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    trace: bool = False
    plain_catalog: Callable[[], Catalog] | None = None
    """Opens the catalog of its Iceberg tables by PyIceberg alone; None: the embedded one."""

    @property
    def control(self) -> ControlFolder:
        """Its state folder."""
        return ControlFolder(self.settings.home, self.spec.pipeline)

    @property
    def places(self) -> Places:
        """Where its tables are."""
        return places_of(self.settings, self.spec.warehouse)

    @property
    def lease_is_live(self) -> bool:
        """Whether an application holds the lease and counts as alive."""
        lease = read_lease(self.control)
        return lease is not None and lease_is_live(self.control, lease, time.time())

    def with_limits(self, **limits: Any) -> Pipeline:
        """Return it with other limits."""
        return replace(self, spec=self.spec.model_copy(update={"limits": self.spec.limits.model_copy(update=limits)}))

    def with_lane(self, lane: Lane) -> Pipeline:
        """Return it with every batch in one lane; the first of an application may be the cluster's."""
        changes = {"max_rows": _MAX_ROWS[lane], "max_bytes": 1 << 40, "direct": lane == "direct"}
        limits = self.spec.driver_lane.model_copy(update=changes)
        return replace(self, spec=self.spec.model_copy(update={"driver_lane": limits}))

    def run_spec(self) -> RunSpec:
        """Return the orders of one more application."""
        app_id = f"{self.spec.pipeline}-{next(_numbers)}"
        run = make_run_spec(self.spec, self.settings, Desired(until=self.until), app_id)
        return run.model_copy(update={"trace": self.trace})

    def landed_ends(self) -> dict[tuple[str, int], int]:
        """Return per topic and partition the offset after the last one of which any table has a row, quarantine included."""
        ends: dict[tuple[str, int], int] = {}
        for table in (*self.spec.tables, self.spec.quarantine_table):
            for topic, partition, offset in table_rows(self.read(table)):
                ends[topic, partition] = max(ends.get((topic, partition), 0), offset + 1)
        return ends

    def lanes(self) -> set[str]:
        """Return who wrote the batches of its first table. It is the ledger that is read: the newest batch says little, because
        the next lane depends on measured times."""
        entries = open_table(self.spec.tables[0], self.places).entries()
        return {committed.entry.lane for committed in entries if committed.entry.lane}

    def judge(self, journal: Journal) -> list[Judgement]:
        """Return the oracle's judgement of each table and of the quarantine."""
        tables = [judge_table(journal, table.id, table_rows(self.read(table))) for table in self.spec.tables]
        quarantine = self.spec.quarantine_table
        return [*tables, judge_quarantine(journal, quarantine.id, quarantine_rows(self.read(quarantine)))]

    def read(self, table: TableSpec) -> Any:
        """Return a table's rows as the oracle reads them."""
        if table.format == "delta":
            folder = self.places.folder(table)
            return read_delta(folder.address, folder.delta_options)
        if self.plain_catalog is not None:
            return self.plain_catalog().load_table((table.namespace, table.short_name)).scan().to_arrow()
        return read_iceberg(self.settings.warehouse / "iceberg" / "catalog.db", table.namespace, table.short_name)


def make_pipeline(
    folder: Path,
    bootstrap_servers: str,
    *topics: str,
    lane: Lane = "driver",
    formats: tuple[Literal["delta", "iceberg"], ...] = ("delta", "iceberg"),
    **changes: Any,
) -> Pipeline:
    """Return a pipeline of JSON events with a table per format; state and tables are below ``folder``.

    Args:
        folder: Of the test alone.
        bootstrap_servers: The broker.
        *topics: What it reads.
        lane: Where its batches are written.
        formats: Of its tables.
        **changes: Other keys of the YAML.
    """
    body: dict[str, Any] = {
        "pipeline": "events",
        "topics": topics,
        "connection": {"bootstrap_servers": bootstrap_servers},
        "value": {"format": "json", "schema": EVENT_SCHEMA},
        "freshness": "250ms",
        "tables": [{"format": name, "name": "events"} for name in formats],
        "limits": {"lease_ttl_seconds": 20, "outage_seconds": 120},
        **changes,
    }
    defaults = load_settings()
    settings = replace(
        defaults,
        home=folder / "home",
        warehouse=folder / "warehouse",
        apps=_apps(folder) if str(changes.get("transform")).startswith(_OF_TESTS) else REPOSITORY / "spark_apps",
        kafka=bootstrap_servers,
        spark_master="local[2]",
    )
    return Pipeline(PipelineSpec.model_validate(body), settings).with_lane(lane)


def _apps(folder: Path) -> Path:
    """Return a folder of entry points with the transform of tests among the others."""
    source, apps = REPOSITORY / "spark_apps", folder / "spark_apps"
    shutil.copytree(source, apps, ignore=shutil.ignore_patterns("lakebound_spark", "__pycache__"))
    shutil.copy(Path(__file__).with_name("landing_transforms.py"), apps / "transforms")
    return apps


def assert_exactly_once(pipeline: Pipeline, journal: Journal) -> None:
    """Check that every acknowledged record is where it must be, once and unaltered, and that the deep proof agrees."""
    assert journal.count(), "the journal is empty: nothing was tested"
    wrong = [str(judgement) for judgement in pipeline.judge(journal) if not judgement.is_clean]
    proof = prove(pipeline.spec, pipeline.places, deep=True)
    problems = [f"{table.table}: {problem}" for table in proof.tables for problem in table.problems]
    assert not wrong, f"{wrong}; the proof says: {problems or proof.sentence}"
    assert proof.ok and not problems, f"the oracle finds nothing wrong, the proof cries wolf: {problems}"
    assert (proof.missing, proof.duplicated) == (0, 0)
