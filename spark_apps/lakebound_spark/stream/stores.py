"""The stores of an application: looked at before anything is made, then opened as targets."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from lakebound.control.private_files import make_private_folder
from lakebound.errors import LakeboundError, TableMismatchError
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.spark_command import is_local
from lakebound.landing.to_stores.open_store import open_store, open_stores
from lakebound.landing.to_stores.target import StoreTarget
from lakebound_spark.batch.targets import Writer

_FOLDER = "stores"


def newest_store_epoch(run: RunSpec) -> int:
    """Return the newest epoch in the ledgers of the stores, as far as they answer now; 0 without any.

    The tables have every epoch before the stores. So this only matters where tables and state are both new.
    """
    epochs = []
    for store in open_stores(run.spec):
        try:
            epochs.append(store.read_ledger().epoch)
        except LakeboundError:
            continue
        finally:
            store.close()
    return max(epochs, default=0)


def check_stores(run: RunSpec, master: str, schemas: Mapping[str, pa.Schema]) -> None:
    """Check, before anything is made, that the pipeline can land in its stores.

    Args:
        run: The orders.
        master: Of Spark.
        schemas: Columns of the files in which rows wait, by the store's id.

    Raises:
        TableMismatchError: Rows would be written on other machines than the driver's.
        StoreRefusedError: A store cannot take the rows, or the user may not write them.
        StoreUnavailableError: A store does not answer.
        ForeignTableError: Another pipeline's entry is the newest of a store.
    """
    for one in run.spec.to_stores:
        if not is_local(master):
            reason = f"its rows wait on the driver's machine, and Spark runs on {master}; run the pipeline by the backend local"
            raise TableMismatchError(one.id, reason)
        target = open_store(one, run.spec, schema=schemas[one.id])
        try:
            target.check()
        finally:
            target.close()


def make_store_targets(run: RunSpec, writer: Writer, schemas: Mapping[str, pa.Schema]) -> list[StoreTarget]:
    """Return the stores as targets of this application.

    Args:
        run: The orders.
        writer: This application.
        schemas: Columns of the files in which rows wait, by the store's id.
    """
    if not run.spec.to_stores:
        return []
    folder = run.control.checkpoint(run.app_id) / _FOLDER
    make_private_folder(folder)
    return [
        open_store(
            one,
            run.spec,
            schema=schemas[one.id],
            scratch=folder / f"{number}-{one.name}",
            check_lease=writer.check_lease,
        )
        for number, one in enumerate(run.spec.to_stores)
    ]


def left_out_by_stores(schemas: Mapping[str, pa.Schema], output: pa.Schema) -> dict[str, frozenset[str]]:
    """Return per store the columns that it does not get.

    Args:
        schemas: Columns of the files in which rows wait, by the store's id.
        output: Columns of the pipeline's rows, with their JSON.
    """
    return {store: frozenset(output.names) - {*schema.names} for store, schema in schemas.items()}
