"""Expiry of exactly the given snapshots of an Iceberg table, and deletion of what only they needed.

Not by Spark's action: what it expires between snapshots that stay takes the whole snapshot log before that place with it, so
nobody could read the table as of a time, nor rewind it to one, from before. It also lists the manifests of every snapshot
twice, in a Spark job, which for a table of thousands takes minutes. The change here is of the metadata file alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from tenacity import retry, retry_if_exception_type, stop_after_attempt

from lakebound.control.handover import Hands
from lakebound.control.turns import AskForTurn
from lakebound.errors import LakeboundError
from lakebound.operations.maintenance.engines import StepLostError, TableGoneError, told
from lakebound.operations.maintenance.iceberg.reach import ManifestUnreadableError, only_needed_by
from lakebound.operations.maintenance.steps import ExpireSnapshots, StepEffect
from lakebound.spec.table import TableSpec
from lakebound.storage.location import Location, delete_all
from lakebound.tables.iceberg.catalog import LedgerCatalog
from lakebound.tables.iceberg.expirable import collects_garbage, expirable
from lakebound.tables.iceberg.features import check_body
from lakebound.tables.iceberg.metadata import Changed, change, read_table
from lakebound.tables.iceberg.metadata_json import Body
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.places import Places
from lakebound.tables.prepared import SnapshotExpiry, to_text

_COMMIT_ATTEMPTS = 60


class CollectionForbiddenError(LakeboundError):
    """The table's own property forbids to delete its files."""

    def __init__(self, table: str) -> None:
        super().__init__(
            f"table {table}: nothing is expired, because its property gc.enabled is false: another table may use its files"
        )


def expire(
    table: TableSpec, step: ExpireSnapshots, places: Places, turn: AskForTurn, hand_over: Hands | None = None
) -> StepEffect:
    """Expire the step's snapshots, but none that the ledger or a branch or tag still needs.

    Args:
        table: The table.
        step: Which snapshots.
        places: Where the table is.
        turn: Asks the stream to let it through when it was faster.
        hand_over: Has the stream make the commit; None: it is made here.

    Raises:
        TableGoneError: There is no such table.
        StepLostError: Others changed the table each time.
        CollectionForbiddenError: The table forbids it.
        BadEntryError: An entry cannot be read: nothing is expired then.
    """
    catalog = open_catalog(places)
    asked = set(step.snapshot_ids)

    def without_asked(body: Body) -> Body | None:
        check_body(body, table.id)
        if not collects_garbage(body):
            raise CollectionForbiddenError(table.id)
        ids = expirable(asked, body, table.id)
        return without(ids, body) if ids else None

    try:
        changed = None
        if hand_over is not None and isinstance(catalog, LedgerCatalog):
            changed = _handed_over(catalog, table, places, without_asked, hand_over)
        if changed is None:
            with turn:
                changed = change(catalog, table, places, without_asked, _COMMIT_ATTEMPTS, on_conflict=turn)
    except LookupError as exc:
        raise TableGoneError(table.id) from exc
    except TimeoutError as exc:
        raise StepLostError(
            table.id, f"other writers changed it during each of {_COMMIT_ATTEMPTS} attempts", _COMMIT_ATTEMPTS
        ) from exc
    if changed is None:
        return StepEffect()
    before, after = _ids(changed.before), _ids(changed.after)
    done = StepEffect(files_before=len(before), files_after=len(after), commits=1, conflicts=changed.conflicts)
    try:
        dead = only_needed_by(before - after, changed.before, places)
    except ManifestUnreadableError as exc:
        note = f"the snapshots are expired, their files are left to the search for orphan files: {exc}"
        return done.model_copy(update={"note": note})
    sizes, removed = _delete(dead, changed.after["location"], places)
    return done.model_copy(update={"bytes_removed": sizes, "removed": told(removed)})


def _handed_over(
    catalog: LedgerCatalog, table: TableSpec, places: Places, how: Callable[[Body], Body | None], hand_over: Hands
) -> Changed | None:
    """Have the stream expire them; None where that did not happen.

    What only they needed is told from the newest metadata and from them: what came since stands on what stayed.

    Raises:
        StepLostError: Nobody knows whether it happened.
    """
    before = _read(catalog, table, places)
    after = how(before)
    if after is None:
        return None
    gone = _ids(before) - _ids(after)
    answer = hand_over(to_text(SnapshotExpiry(snapshot_ids=tuple(sorted(gone)))), int(time.time() * 1000))
    if answer is None:
        return None
    newest = _read(catalog, table, places)
    done = gone - _ids(newest)
    if not done and answer.outcome == "unknown":
        raise StepLostError(table.id, f"its commit was handed to the stream: {answer.reason}")
    if not done:
        return None
    expired = [one for one in before["snapshots"] if one["snapshot-id"] in done]
    statistics = {name: [*newest.get(name, []), *before.get(name, [])] for name in ("statistics", "partition-statistics")}
    return Changed({**newest, **statistics, "snapshots": [*newest["snapshots"], *expired]}, newest, 0)


@retry(retry=retry_if_exception_type(FileNotFoundError), stop=stop_after_attempt(20), reraise=True)
def _read(catalog: LedgerCatalog, table: TableSpec, places: Places) -> Body:
    found = read_table(catalog, table, places)
    if found is None:
        raise LookupError(table.id)
    return found[1]


def without(ids: set[int], body: Body) -> Body:
    """Return the metadata without these snapshots, all else as it was. Pure."""
    result = {**body, "snapshots": [one for one in body["snapshots"] if one["snapshot-id"] not in ids]}
    for name in ("snapshot-log", "statistics", "partition-statistics"):
        if name in body:
            result[name] = [one for one in body[name] if one["snapshot-id"] not in ids]
    return result


def _ids(body: Body) -> set[int]:
    return {snapshot["snapshot-id"] for snapshot in body["snapshots"]}


def _delete(locations: Iterable[str], root: str, places: Places) -> tuple[int, list[str]]:
    """Delete the files below the table's folder; what lies elsewhere came from elsewhere, and stays."""
    folder, size, removed = places.file_at(root), 0, []
    doomed: list[Location] = []
    for location in locations:
        file = places.file_at(location)
        try:
            path = file.relative_to(folder)
        except ValueError:
            continue
        found = file.describe() if file.is_local else None
        if file.is_local and found is None:
            continue
        size += found.size_bytes if found is not None else 0
        removed.append(path)
        doomed.append(file)
    delete_all(doomed)
    return size, removed
