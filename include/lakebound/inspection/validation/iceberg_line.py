"""An Iceberg table's standing line from its metadata file, and the files that each snapshot's own manifests added."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from lakebound.errors import BadEntryError
from lakebound.inspection.validation.landed_files import LandedFile, step_of
from lakebound.inspection.validation.line import Line, LineCommit
from lakebound.ledger.entry import ENTRY_KEY
from lakebound.spec.table import TableSpec
from lakebound.tables.entries import read_entry
from lakebound.tables.iceberg.manifests import MANIFESTS, AvroFields
from lakebound.tables.iceberg.metadata import read_table
from lakebound.tables.iceberg.metadata_json import Body
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.places import Places

_ADDED = 1
_READINGS = 4
_ENTRIES = AvroFields(ids=(0, 1, 2), nested={2: AvroFields(ids=(134, 100, 103))})
"""Of a manifest: status, snapshot id, data file (content, path, records)."""

Snapshot = dict[str, Any]


class IcebergLine:
    """Reads one Iceberg table; a position is a snapshot's sequence number."""

    def __init__(self, spec: TableSpec, places: Places) -> None:
        self._spec, self._places = spec, places
        self._snapshots: dict[str, Snapshot] = {}

    def line(self, is_validated: Callable[[int], bool]) -> Line:
        """Return the standing line: the current snapshot's ancestors; where a parent has expired, what was current before."""
        body = self._read()
        self._snapshots = {str(one["snapshot-id"]): one for one in (body or {}).get("snapshots") or ()}
        steps: list[LineCommit] = []
        for snapshot in _walk(body or {}):
            step = self._step(snapshot)
            steps.append(step)
            if is_validated(step.position):
                break
        return Line(self._spec.id, tuple(steps))

    def files(self, steps: Iterable[LineCommit]) -> list[LandedFile]:
        """Return the files that the snapshots' own manifests added."""
        return [file for step in steps for file in self._added(step)]

    def _read(self) -> Body | None:
        catalog = open_catalog(self._places)
        for reading in range(1, _READINGS + 1):
            try:
                found = read_table(catalog, self._spec, self._places)
                return None if found is None else found[1]
            except FileNotFoundError:  # two commits further already
                if reading == _READINGS:
                    raise
        raise AssertionError("the last reading returns or raises")

    def _step(self, snapshot: Snapshot) -> LineCommit:
        number = snapshot["snapshot-id"]
        text = (snapshot.get("summary") or {}).get(ENTRY_KEY)
        try:
            entry = read_entry(text, f"snapshot {number} of {self._spec.id}")
        except BadEntryError:
            entry = None
        parent = self._snapshots.get(str(snapshot.get("parent-snapshot-id")))
        return step_of(
            entry,
            position=int(snapshot.get("sequence-number", 0)),
            version=str(number),
            committed_at_ms=int(snapshot["timestamp-ms"]),
            parent=int(parent.get("sequence-number", 0)) if parent else None,
        )

    def _added(self, step: LineCommit) -> Iterator[LandedFile]:
        snapshot = self._snapshots.get(step.version)
        if snapshot is None:
            return
        number = snapshot["snapshot-id"]
        try:
            for manifest in MANIFESTS.rows(self._places.file_at(snapshot["manifest-list"]).read()):
                if manifest[3] == number and not manifest[4]:
                    yield from self._files(self._places.file_at(manifest[0]).read(), step, number)
        except FileNotFoundError:
            return  # expired meanwhile

    def _files(self, manifest: bytes, step: LineCommit, number: int) -> Iterator[LandedFile]:
        for entry in _ENTRIES.rows(manifest):
            if entry[0] == _ADDED and entry[1] in (None, number) and not entry[2][0]:
                yield LandedFile(self._places.file_at(entry[2][1]), step.version, step.committed_at_ms, int(entry[2][2]))


def _walk(body: Body) -> Iterator[Snapshot]:
    """Yield the current snapshot and what it stands on, newest first."""
    known = {one["snapshot-id"]: one for one in body.get("snapshots") or ()}
    logged = [entry["snapshot-id"] for entry in body.get("snapshot-log") or () if entry["snapshot-id"] in known]
    at = known.get(body.get("current-snapshot-id"))
    while at is not None:
        yield at
        parent = known.get(at.get("parent-snapshot-id"))
        if parent is None and at.get("parent-snapshot-id") is not None:
            older = [one for one in logged if known[one].get("sequence-number", 0) < at.get("sequence-number", 0)]
            parent = known[max(older, key=lambda one: known[one].get("sequence-number", 0))] if older else None
        at = parent
