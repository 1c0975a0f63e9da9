"""Iceberg's rewriting steps, by Iceberg's own Spark actions, with the ledger's entry carried on by each commit.

The actions and not the SQL procedures: those drop the entry. Their commits are made by ``iceberg_operations``; one that the
stream overtook is applied again by Iceberg.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import SparkSession

from lakebound.control.folder import ControlFolder
from lakebound.control.handover import HandOver
from lakebound.control.turns import AskForTurn
from lakebound.errors import LakeboundError
from lakebound.landing.batch_command import check_shared
from lakebound.ledger.entry import ENTRY_KEY, encode
from lakebound.operations.maintenance.engines import StepLostError, TableGoneError, carried_entry
from lakebound.operations.maintenance.iceberg.partition import Condition, conditions
from lakebound.operations.maintenance.steps import Compact, RewriteManifests, RewritePositionDeletes, StepEffect
from lakebound.spec.table import TableSpec
from lakebound.tables.iceberg.catalog import CATALOG_NAME, LedgerCatalog
from lakebound.tables.iceberg.features import check_body
from lakebound.tables.iceberg.metadata import change
from lakebound.tables.iceberg.metadata_json import Body
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.places import Places
from lakebound_spark.maintain.iceberg_operations import SyncedOperations, start_callbacks

_COMMIT_RETRIES = {"commit.retry.num-retries": "100", "commit.retry.min-wait-ms": "20", "commit.retry.max-wait-ms": "100"}
"""Iceberg takes them from the table. Its own four retries are too few beside a stream: a try takes 0.1 to 0.5 s, and is lost
when a commit of the stream falls into it, as all do beside ten commits a second until the stream gives a turn."""

_TARGETS_PER_GROUP = 8
_MAX_COMMITS = 10
_LARGEST_LONG = 2**63 - 1
_SETTLED_FILES = (100, 10, 0)
"""The stream's appends merge manifests of up to ten files every ten commits, of up to a hundred every hundred, and drop those
without a live file: rewriting these is a race that is lost. So the larger ones are tried first, and alone if there are some."""

_ICEBERG = "org.apache.iceberg.exceptions."
_LOST = tuple(f"{_ICEBERG}{name}" for name in ("CommitFailedException", "ValidationException", "CommitStateUnknownException"))
_GONE = (f"{_ICEBERG}NoSuchTableException", "org.apache.spark.sql.catalyst.analysis.NoSuchTableException")


class RewriteFailedError(LakeboundError):
    """Spark could not rewrite files; it has nothing to do with other commits."""

    def __init__(self, table: str, reason: str) -> None:
        super().__init__(f"table {table}: files could not be rewritten: {reason}; see the log of the run")


class IcebergActions:
    """A ``lakebound.operations.maintenance.format_steps.SparkRewriter``."""

    def __init__(self, session: SparkSession, places: Places, control: ControlFolder) -> None:
        self._session: Any = session
        self._control = control
        self._places = places
        self._hand_overs: dict[str, HandOver] = {}
        jvm: Any = session._jvm
        self._iceberg: Any = jvm.org.apache.iceberg
        _write_no_checksum_files(jvm, self._session._jsc.hadoopConfiguration())
        start_callbacks(self._session.sparkContext._gateway)

    def compact(self, table: TableSpec, step: Compact) -> StepEffect:
        """Rewrite the files below ``below_bytes`` of a partition; a large rewrite is several commits."""
        options = {
            "min-file-size-bytes": step.below_bytes,
            "target-file-size-bytes": step.target_file_bytes,
            "max-file-size-bytes": _LARGEST_LONG,
            "min-input-files": 2,
            "max-concurrent-file-group-rewrites": 1,
            "max-file-group-size-bytes": _TARGETS_PER_GROUP * step.target_file_bytes,
            "partial-progress.enabled": "true",
            "partial-progress.max-commits": _MAX_COMMITS,
            "partial-progress.max-failed-commits": 0,
            "use-starting-sequence-number": "true",
        }
        if step.with_deletes:
            options["delete-file-threshold"] = 1

        def rewrite(actions: Any, loaded: Any) -> StepEffect:
            action = actions.rewriteDataFiles(loaded)
            if step.partition:
                action = action.filter(self._filter(table, step))
            if step.order_by:
                action = action.sort(self._sort_order(loaded, step.order_by))
            result = self._execute(action, table, options)
            if result.failedDataFilesCount():
                raise RewriteFailedError(table.id, f"{result.failedDataFilesCount()} of them failed")
            return StepEffect(
                files_before=result.rewrittenDataFilesCount(),
                files_after=result.addedDataFilesCount(),
                bytes_rewritten=result.rewrittenBytesCount(),
            )

        return self._run(table, rewrite)

    def rewrite_manifests(self, table: TableSpec, step: RewriteManifests) -> StepEffect:
        """Rewrite manifests as few; those that the stream's appends merge anyway are left to them."""

        def rewrite(actions: Any, loaded: Any) -> StepEffect:
            for least in _SETTLED_FILES:
                result = self._execute(actions.rewriteManifests(loaded).rewriteIf(_Settled(least)), table, {})
                rewritten = len(list(result.rewrittenManifests()))
                if rewritten:
                    return StepEffect(files_before=rewritten, files_after=len(list(result.addedManifests())))
            return StepEffect()

        return self._run(table, rewrite)

    def rewrite_position_deletes(self, table: TableSpec, step: RewritePositionDeletes) -> StepEffect:
        """Rewrite position delete files as few, without those that delete nothing any more."""

        def rewrite(actions: Any, loaded: Any) -> StepEffect:
            action = actions.rewritePositionDeletes(loaded)
            options = {"min-input-files": 2, "max-concurrent-file-group-rewrites": 1, "partial-progress.enabled": "true"}
            result = self._execute(action, table, options)
            return StepEffect(
                files_before=result.rewrittenDeleteFilesCount(),
                files_after=result.addedDeleteFilesCount(),
                bytes_rewritten=result.rewrittenBytesCount(),
            )

        return self._run(table, rewrite)

    def _run(self, table: TableSpec, rewrite: Callable[[Any, Any], StepEffect]) -> StepEffect:
        """Run an action on the table, and count its commits.

        Raises:
            StepLostError: None of its commits got through.
            TableGoneError: There is no such table.
            CatalogNotSharedError: Spark cannot open it.
        """
        check_shared(table.id, self._places)
        reporter = _Reporter()
        with AskForTurn(self._control, table.id) as turn:
            try:
                self._allow_retries(table)
                loaded, operations = self._load(table, reporter, turn)
            except (Py4JJavaError, CapturedException) as exc:
                return self._after_error(table, exc, reporter, 0)
            try:
                done = rewrite(self._iceberg.spark.actions.SparkActions.get(), loaded)
            except (Py4JJavaError, CapturedException) as exc:
                return self._after_error(table, exc, reporter, operations.conflicts)
        return done.model_copy(update={"commits": operations.commits, "conflicts": operations.conflicts})

    def _after_error(
        self, table: TableSpec, exc: Py4JJavaError | CapturedException, reporter: _Reporter, conflicts: int
    ) -> StepEffect:
        causes = _causes(exc.java_exception if isinstance(exc, Py4JJavaError) else exc._origin)
        names, message = {name for name, _ in causes}, causes[0][1]
        if names & set(_GONE):
            raise TableGoneError(table.id) from exc
        is_lost = bool(names & set(_LOST)) or "rewrite commits failed" in message or "database is locked" in str(causes)
        if not is_lost:
            raise RewriteFailedError(table.id, f"{causes[-1][0]}: {causes[-1][1]}") from exc
        if reporter.commits:
            return reporter.done(conflicts, note=f"some of its commits were lost to the stream: {message}")
        raise StepLostError(table.id, message, conflicts) from exc

    def _execute(self, action: Any, table: TableSpec, options: dict[str, Any]) -> Any:
        for name, value in options.items():
            action = action.option(name, str(value))
        return action.snapshotProperty(ENTRY_KEY, encode(carried_entry(table, self._places))).execute()

    def _load(self, table: TableSpec, reporter: _Reporter, turn: AskForTurn) -> tuple[Any, SyncedOperations]:
        loaded = self._iceberg.spark.Spark3Util.loadIcebergTable(
            self._session._jsparkSession, f"{CATALOG_NAME}.{table.namespace}.{table.short_name}"
        )
        catalog = open_catalog(self._places)
        assert isinstance(catalog, LedgerCatalog), "check_shared refuses the others"
        hand_over = self._hand_overs.setdefault(table.id, HandOver(self._control, table.id))
        operations = SyncedOperations(loaded.operations(), self._session._jvm, catalog, table, turn, hand_over)
        return self._iceberg.BaseTable(operations, loaded.name(), reporter), operations

    def _allow_retries(self, table: TableSpec) -> None:
        """Give the table the properties by which Iceberg tries a commit again, unless it has its own."""

        def with_retries(body: Body) -> Body | None:
            check_body(body, table.id)
            properties = body.get("properties", {})
            missing = {name: value for name, value in _COMMIT_RETRIES.items() if name not in properties}
            return {**body, "properties": {**properties, **missing}} if missing else None

        catalog = open_catalog(self._places)
        try:
            with AskForTurn(self._control, table.id) as turn:
                change(catalog, table, self._places, with_retries, attempts=60, on_conflict=turn)
        except LookupError as exc:
            raise TableGoneError(table.id) from exc
        except TimeoutError as exc:
            raise StepLostError(table.id, f"its properties could not be set: {exc}") from exc

    def _filter(self, table: TableSpec, step: Compact) -> Any:
        catalog = open_catalog(self._places)
        metadata = catalog.load_table((table.namespace, table.short_name)).metadata
        found = [self._expression(one) for one in conditions(step.partition, metadata, table.id)]
        return reduce(getattr(self._expressions, "and"), found, self._expressions.alwaysTrue())

    @property
    def _expressions(self) -> Any:
        return self._iceberg.expressions.Expressions

    def _expression(self, condition: Condition) -> Any:
        name, _, argument = condition.transform.rstrip("]").partition("[")
        if name == "identity":
            term: Any = condition.column
        elif argument:
            term = getattr(self._expressions, name)(condition.column, int(argument))
        else:
            term = getattr(self._expressions, name)(condition.column)
        if condition.value is None:
            return self._expressions.isNull(term)
        if isinstance(condition.value, float) and math.isnan(condition.value):
            return self._expressions.isNaN(term)
        return self._expressions.equal(term, condition.value)

    def _sort_order(self, loaded: Any, columns: tuple[str, ...]) -> Any:
        return reduce(
            lambda builder, column: builder.asc(column), columns, self._iceberg.SortOrder.builderFor(loaded.schema())
        ).build()


class _Reporter:
    """Java's MetricsReporter, implemented here: what Iceberg tells of each commit that got through."""

    def __init__(self) -> None:
        self.commits = 0
        self._added = self._removed = self._bytes = 0

    def report(self, report: Any) -> None:
        """Take a report; those of scans say nothing of commits."""
        if not report.getClass().getName().endswith("CommitReport"):
            return
        metrics = report.commitMetrics()
        self.commits += 1
        self._added += _value(metrics.addedDataFiles())
        self._removed += _value(metrics.removedDataFiles())
        self._bytes += _value(metrics.removedFilesSizeInBytes())

    def done(self, conflicts: int, note: str) -> StepEffect:
        """Return what its commits did together, though others failed."""
        return StepEffect(
            files_before=self._removed,
            files_after=self._added,
            bytes_rewritten=self._bytes,
            commits=self.commits,
            conflicts=conflicts,
            note=note,
        )

    class Java:
        """For Py4J."""

        implements = ("org.apache.iceberg.metrics.MetricsReporter",)


class _Settled:
    """Java's Predicate, implemented here: whether appends leave a manifest as it is."""

    def __init__(self, least: int) -> None:
        self._least = least

    def test(self, manifest: Any) -> bool:
        """Say it of one manifest."""
        live = int(manifest.addedFilesCount()) + int(manifest.existingFilesCount())
        # One with deleted entries is not merged by appends.
        return live > 0 and (live >= self._least or int(manifest.deletedFilesCount()) > 0)

    class Java:
        """For Py4J."""

        implements = ("java.util.function.Predicate",)


def _write_no_checksum_files(jvm: Any, configuration: Any) -> None:
    """Have Hadoop put no ``.crc`` file beside each local file: nobody would delete them with the file."""
    local = jvm.org.apache.hadoop.fs.FileSystem.get(jvm.java.net.URI("file:///"), configuration)
    local.setWriteChecksum(False)
    local.setVerifyChecksum(False)


def _value(counter: Any) -> int:
    return int(counter.value()) if counter is not None else 0


def _causes(error: Any) -> list[tuple[str, str]]:
    """Return class and first line of the message, of a Java error and of what caused it."""
    found: list[tuple[str, str]] = []
    while error is not None and len(found) < 10:
        message = str(error.getMessage() or "")
        found.append((str(error.getClass().getName()), (message.splitlines() or [""])[0]))
        error = error.getCause()
    return found or [("unknown", "no reason given")]
