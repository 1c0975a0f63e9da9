"""A pipeline whose table was landed without Spark, and whose store is filled from it (``rebuild-store --from-table``).

As a module, ``python -m tests.support.stores.refilling HOME SPEC STORE TABLE`` plans and applies in a process of its own, which
``LAKEBOUND_FAULTS`` can kill. SPEC is the pipeline as JSON.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakebound.control.incidents import Incident
from lakebound.landing.to_stores.open_store import open_store
from lakebound.landing.to_stores.store_rows import staged_schema
from lakebound.ledger.entry import Entry, Offsets, TopicOffsets, new_commit_id
from lakebound.ledger.topics import TopicFacts
from lakebound.operations.recovery import store_rebuild
from lakebound.operations.recovery.facts import BrokerFacts
from lakebound.operations.recovery.plan import ApprovablePlan
from lakebound.operations.recovery.store_refill.apply import apply_store_refill
from lakebound.operations.recovery.store_refill.collect import collect_refill
from lakebound.operations.recovery.store_refill.plan import plan_store_refill
from lakebound.settings import Settings, load_settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.commit import commit_entry
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.fitting import fit_rows
from lakebound.tables.places import Places, places_of
from lakebound.tables.table import KAFKA_TYPE, LedgerView, Table, open_table
from tests.support.stores.landing import COLUMNS, PIPELINE, SOURCE

TOPIC_ID = "source-id"
MOST_ROWS = 7
Row = Mapping[str, Any]
"""Columns of a row, and ``partition``, ``offset`` and ``ordinal`` of its record."""


@dataclass
class Landed:
    """One table of a pipeline, and who lands in it."""

    spec: PipelineSpec
    settings: Settings
    table: TableSpec
    columns: pa.Schema = COLUMNS

    @property
    def places(self) -> Places:
        """Where the table is."""
        return places_of(self.settings, self.spec.warehouse)

    def opened(self) -> Table:
        """The table; it is made if need be."""
        table = open_table(self.table, self.places)
        if not table.exists():
            table.create(self.columns, self._draft("genesis", {}))
        return table

    def land(self, rows: Sequence[Row], covers: Mapping[int, tuple[int, int]], *, topic_id: str = TOPIC_ID) -> None:
        """Land rows, in one file.

        Args:
            rows: The rows, in any order.
            covers: First and next offset of each partition that is landed.
            topic_id: Of the topic.
        """
        table = self.opened()
        view = table.read_ledger()
        files = [] if not rows else write_data_files(arrow(rows, self.columns, topic_id), table.layout(), uuid.uuid4().hex)
        self.commit(table, view, files, self._range(covers, len(rows), topic_id))

    def commit(self, table: Table, view: LedgerView, files: Any, draft: Entry) -> None:
        """Commit once."""
        commit_entry(table, view, files, draft, own_epoch=max(1, view.epoch), check_lease=lambda: None, attempts=1)

    def plan(self, store: str = "cards") -> ApprovablePlan:
        """Plan, with all rows read."""
        return plan_store_refill(self.spec, collect_refill(self.spec, self.places, store, self.table.id, reads="rows"))

    def apply(self, approved: str, store: str = "cards") -> Incident:
        """Apply a plan, in pieces of a few rows."""
        return apply_store_refill(self.spec, self.settings, store, self.table.id, approved, by="somebody", most_rows=MOST_ROWS)

    def go_on(self, rows: Sequence[Row], covers: Mapping[int, tuple[int, int]], epoch: int) -> Offsets:
        """Start an application that lands in the store alone, let it land a batch, and return what the store then covers."""
        store, folder = self.spec.to_stores[0], self.settings.home / f"application-{epoch}"
        schema = staged_schema(store, self.columns)
        target = open_store(store, self.spec, schema=schema, scratch=folder, check_lease=lambda: None)
        try:
            target.check()
            if not target.exists():
                target.create(schema, self._draft("genesis", {}))
            view = target.read_ledger()
            for draft, landed in ((self._draft("open", {}), ()), (self._range(covers, len(rows)), rows)):
                waiting = fit_rows(arrow(landed, self.columns), schema)
                files = write_data_files(waiting, target.layout(), uuid.uuid4().hex) if landed else []
                view = commit_entry(target, view, files, draft, own_epoch=epoch, check_lease=lambda: None, attempts=1).view
            return view.coverage
        finally:
            target.close()

    def _range(self, covers: Mapping[int, tuple[int, int]], rows: int, topic_id: str = TOPIC_ID) -> Entry:
        partitions = {p: (interval,) for p, interval in sorted(covers.items())}
        return self._draft("land", {SOURCE: TopicOffsets(topic_id=topic_id, partitions=partitions)}, rows)

    def _draft(self, kind: Any, landed: Offsets, rows: int = 0) -> Entry:
        counts = {"read": rows, "landed": rows, "rows": rows}
        return Entry(kind=kind, pipeline=PIPELINE, epoch=1, commit=new_commit_id(), range=landed, **counts)


def arrow(rows: Iterable[Row], columns: pa.Schema, topic_id: str = TOPIC_ID) -> pa.Table:
    """Return rows as a table takes them."""
    held = []
    for row in rows:
        place = {"topic": SOURCE, "topic_id": topic_id, "timestamp": None}
        kafka = {**place, **{name: row[name] for name in ("partition", "offset", "ordinal")}}
        held.append({**{name: row.get(name) for name in columns.names}, "_kafka": kafka})
    return fit_rows(
        pa.Table.from_pylist(held, schema=pa.schema([*list(columns)[:-1], pa.field("_kafka", KAFKA_TYPE)])), columns
    )


def settings_of(home: Path) -> Settings:
    """Return the settings of a machine with its state in a folder."""
    return load_settings({"LAKEBOUND_HOME": str(home)})


def kafka_of(earliest: Mapping[int, int], latest: Mapping[int, int], topic_id: str = TOPIC_ID) -> BrokerFacts:
    """Return what the broker says."""
    return BrokerFacts({SOURCE: TopicFacts(topic_id, dict(earliest), dict(latest))})


def pipeline_of(store: Mapping[str, Any], table_format: str = "delta", **more: Any) -> PipelineSpec:
    """Return a pipeline with one store."""
    return PipelineSpec.model_validate(
        {
            "pipeline": PIPELINE,
            "topics": [SOURCE],
            "connection": {"bootstrap_servers": "127.0.0.1:1"},
            "value": {"format": "json", "schema": "card STRING, number BIGINT, amount INT, paid_at TIMESTAMP"},
            "freshness": "1s",
            "tables": [{"format": table_format, "name": "shop.payments"}],
            "to_stores": [store],
            **more,
        }
    )


def main() -> None:
    """Plan and apply; Kafka still has what the table does not cover."""
    home, spec, store, table = sys.argv[1:]
    pipeline = PipelineSpec.model_validate_json(spec)
    [chosen] = [one for one in pipeline.tables if one.id == table]
    landed = Landed(pipeline, settings_of(Path(home)), chosen)
    marks = landed.opened().read_ledger().coverage[SOURCE].partitions
    ends = {partition: intervals[-1][1] for partition, intervals in marks.items()}
    store_rebuild.collect_kafka = lambda _: kafka_of(ends, ends)
    landed.apply(landed.plan(store).hash, store)


if __name__ == "__main__":
    main()
