"""What a running stream tells OpenLineage. Never delays or fails a stream."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from functools import partial

from openlineage.client.uuid import generate_new_uuid

from lakebound.control.progress import Outcome
from lakebound.landing.lineage_client import LineageClient, LineageEnd, open_client
from lakebound.landing.lineage_events import Landed, LineageRun, LineageTable
from lakebound.landing.lineage_names import catalog_name, folder_name
from lakebound.landing.lineage_settings import LineageSettings
from lakebound.landing.run_spec import RunSpec
from lakebound.ledger.entry import high_water_marks
from lakebound.spec.table import TableSpec
from lakebound.tables.format_rules import rules_of
from lakebound.tables.places import Places
from lakebound_spark.batch.targets import Target

log = logging.getLogger(__name__)


class StreamLineage:
    """Tells of one application."""

    def __init__(self, run: RunSpec, settings: LineageSettings, interval_seconds: float) -> None:
        self._run = run
        self._settings = settings
        self._interval_seconds = interval_seconds
        self._client: LineageClient | None = None

    def start(self, targets: Sequence[Target], quarantine: Target, spark_version: str) -> None:
        """Tell that the stream starts.

        Args:
            targets: What it lands in.
            quarantine: Where it puts what cannot land.
            spark_version: Spark's.
        """
        try:
            self._client = self._made(targets, quarantine, spark_version)
        except Exception as exc:
            log.warning("lineage: nothing is sent, because a topic or a table has no name for it: %s", type(exc).__name__)
        else:
            self._client.start()

    def end(self, outcome: Outcome) -> None:
        """Tell how the application ended; returns at once."""
        if self._client is not None:
            self._client.end(lineage_end(outcome))

    def wait(self) -> None:
        """Give the last event a moment to arrive."""
        if self._client is not None and not self._client.wait():
            log.warning("lineage: the last event was not accepted in time")

    def _made(self, targets: Sequence[Target], quarantine: Target, spark_version: str) -> LineageClient:
        spec = self._run.spec
        run = LineageRun(
            run_id=str(generate_new_uuid()),
            namespace=self._settings.namespace,
            pipeline=spec.pipeline,
            bootstrap_servers=spec.connection.bootstrap_servers,
            topics=tuple(spec.topics),
            started_at=time.time(),
            spark_version=spark_version,
        )
        of_tables = [target for target in targets if isinstance(target.table.spec, TableSpec)]
        tables = [lineage_table(target, self._run.places) for target in (*of_tables, quarantine)]
        look = partial(landed_so_far, tuple(of_tables), quarantine)
        return LineageClient(run, tables, look, partial(open_client, self._settings), self._interval_seconds)


def lineage_end(outcome: Outcome) -> LineageEnd:
    """Return what OpenLineage calls such an end."""
    if outcome.verdict in ("stopped", "completed"):
        return LineageEnd("COMPLETE")
    if outcome.verdict == "superseded":
        return LineageEnd("ABORT")
    return LineageEnd("FAIL", outcome.reason)


def lineage_table(target: Target, places: Places) -> LineageTable:
    """Return a table as OpenLineage knows it.

    Args:
        target: The table; it exists.
        places: Where the pipeline's tables are.
    """
    spec, folder, catalog = target.table.spec, target.table.layout().folder, places.warehouse.catalog
    assert isinstance(spec, TableSpec), "a topic is no table"
    rules = rules_of(spec.format)
    alias = catalog_name(catalog, spec) if rules.has_catalog and catalog is not None else None
    name = folder_name(rules.table_folder(folder).address)
    return LineageTable(spec.id, name, alias, spec.format, target.table.schema())


def landed_so_far(targets: Sequence[Target], quarantine: Target) -> Mapping[str, Landed]:
    """Return what was committed, by the table's id. The stream commits meanwhile: each number was true a moment ago."""
    marks = {target.id: high_water_marks(target.view.coverage) for target in targets}
    return {
        one.id: Landed(one.rows, one.size_bytes, one.files, one.view.version, marks.get(one.id))
        for one in (*targets, quarantine)
    }
