"""The stores of an application: looked at before anything is made, then opened as targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from lakebound.errors import ForeignTableError, LakeboundError, StoreShapeError, TableMismatchError
from lakebound.first_line import first_line
from lakebound.landing.other_target import OtherTarget
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.to_stores import store_rows
from lakebound.landing.to_stores.open_store import open_store
from lakebound.landing.to_stores.postgres_statements import table_columns
from lakebound.spec.to_stores import ToStoreSpec
from lakebound.tables.schemas import normalise_schema
from lakebound_spark.batch.landable import Bound
from lakebound_spark.batch.store_bounds import store_bounds
from lakebound_spark.batch.targets import Writer
from lakebound_spark.stream.target_kind import ApplicationTargets


class StoreTargets(ApplicationTargets):
    """Rows or counters by key, in PostgreSQL or Redis."""

    key = "to_stores"

    def staged_schema(self, one: ToStoreSpec) -> pa.Schema:
        """Return the columns of the files in which rows wait for a store."""
        return store_rows.staged_schema(one, self.planned.arrow_columns)

    def check(self, topic_ids: Mapping[str, str]) -> None:
        """Check, before anything is made, that the pipeline can land in its stores.

        Args:
            topic_ids: Is not used.

        Raises:
            StoreRefusedError: A store cannot take the rows, or the user may not write them.
            StoreUnavailableError: A store does not answer.
            ForeignTableError: Another pipeline's entry is the newest of a store.
        """
        for one in self.specs:
            target = open_store(one, self.run.spec, schema=self.staged[one.id])
            try:
                target.check()
            finally:
                target.close()

    def make(self, writer: Writer, folder: Path) -> list[OtherTarget]:
        """Return the stores as targets of this application."""
        return [
            open_store(
                one,
                self.run.spec,
                schema=self.staged[one.id],
                scratch=folder / f"{number}-{one.name}",
                check_lease=writer.check_lease,
            )
            for number, one in enumerate(self.specs)
        ]

    def bounds(self) -> list[Bound]:
        """Return which values the stores take."""
        return [bound for one in self.specs for bound in store_bounds(one, self.planned.arrow_columns)]

    @classmethod
    def plan_problems(cls, run: RunSpec, one: ToStoreSpec, output: DataFrame) -> Iterator[tuple[str, str | None]]:
        """Yield what keeps a pipeline from landing in a store: the columns, or what it holds, if it answers now."""
        try:
            schema = store_rows.staged_schema(one, normalise_schema(to_arrow_schema(output.schema)))
            if one.postgres is not None:
                table_columns(one, schema)
        except TableMismatchError as exc:
            yield f"{one.id}: {exc.difference}", None
            return
        except (PySparkException, pa.ArrowException, TypeError) as exc:
            yield f"{one.id}: no store holds what the pipeline makes: {first_line(exc)}", None
            return
        target = open_store(one, run.spec, schema=schema)
        try:
            target.check_ledger()
        except (StoreShapeError, ForeignTableError) as exc:
            yield str(exc), None
        except LakeboundError:
            return  # the doctor speaks of these; a check may be made where a store cannot be reached
        finally:
            target.close()


TARGETS = StoreTargets
