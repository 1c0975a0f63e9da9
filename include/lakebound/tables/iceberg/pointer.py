"""Whether the catalog names an Iceberg table's newest metadata: a catalog that was restored from an older copy does not.

A start from there would fork the table's history: it would land the same offsets again, on the older snapshot, and what readers
have seen of the newer ones would be gone. A metadata file does not say whether its commit took place. But each names the files
before it (``metadata-log``), and who wrote it had read the file before it from the catalog: what another file names was
committed. A file that nobody names may be what a killed writer left, so one such file beyond the catalog's is no finding.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lakebound.errors import (
    CatalogBehindError,
    CommitRefusedError,
    ForgottenTableError,
    LakeboundError,
    TableUnreadableError,
)
from lakebound.ledger.entry import ENTRY_KEY
from lakebound.spec.table import TableSpec
from lakebound.storage.location import Location
from lakebound.tables.iceberg.catalog import LedgerCatalog
from lakebound.tables.iceberg.metadata import metadata_location, read_body, swap
from lakebound.tables.iceberg.open import AnyCatalog
from lakebound.tables.places import Places

_DAMAGED = (OSError, EOFError, ValueError, KeyError, TypeError, zlib.error)
"""What reading a file that is no metadata may raise."""

_LOOKS = 5
"""A commit that takes place during a look makes another one necessary."""


@dataclass(frozen=True)
class MetadataFile:
    """What a metadata file says of the table's history.

    Attributes:
        name: Of the file.
        number: Which its name begins with: one more with each commit.
        table: UUID of the table.
        log: Names of the files before it, the oldest first, as far as they are kept.
        snapshots: Ids of the snapshots that it has.
        current: The current one; None before the first.
    """

    name: str
    number: int
    table: str = ""
    log: tuple[str, ...] = ()
    snapshots: frozenset[int] = frozenset()
    current: int | None = None

    def follows(self, earlier: MetadataFile, history: frozenset[str]) -> bool:
        """Whether another file is of this one's history.

        Args:
            earlier: The other file.
            history: Names of the files from which this one is known to come (``_history``).
        """
        if earlier.name in history:
            return True
        reaches = min((number_of(name) for name in self.log), default=self.number)
        return earlier.number < reaches and (earlier.current is None or earlier.current in self.snapshots)


@dataclass(frozen=True)
class Behind:
    """The catalog names an older metadata file than the newest.

    Attributes:
        newest: Name of the newest of its history; None where there are several histories, and a person must choose.
        names: Of the files at the end of each history.
    """

    newest: str | None
    names: tuple[str, ...]


def judge(pointer: str, files: Sequence[MetadataFile]) -> Behind | None:
    """Return where the catalog should point, or None where it points right. Pure.

    Args:
        pointer: Name of the file that the catalog names.
        files: Those of the table's folder whose number is not lower; the catalog's own may be gone, because commits delete
            old ones.
    """
    own = next((file for file in files if file.name == pointer), None)
    others = [file for file in files if file.name != pointer and (own is None or file.table == own.table)]
    committed = {name for file in others for name in file.log}
    ahead = [file for file in others if file.name in committed]
    if not others or (own is not None and not ahead):
        return None
    known = {pointer, *(file.name for file in files)}
    ends = _ends([file for file in others if file.name in committed or not file.log or file.log[-1] in known], committed)
    earlier = [*ahead, *([own] if own is not None else [])]
    if len(ends) == 1:
        history = _history(ends[0], files)
        if all(ends[0].follows(file, history) for file in earlier if file != ends[0]):
            return Behind(ends[0].name, (ends[0].name,))
    apart = {file.name for file in ends or others}
    if own is not None and own.name not in committed:
        apart.add(own.name)
    return Behind(None, tuple(sorted(apart)))


def _history(end: MetadataFile, files: Sequence[MetadataFile]) -> frozenset[str]:
    """Return the names of the files from which one comes, from log to log."""
    known, found = {file.name: file for file in files}, {end.name, *end.log}
    waiting = list(end.log)
    while waiting:
        file = known.get(waiting.pop())
        further = set(file.log) - found if file is not None else set()
        found |= further
        waiting += further
    return frozenset(found)


def _ends(files: Sequence[MetadataFile], committed: set[str]) -> list[MetadataFile]:
    """Return the newest file of each history.

    Of files that were written on the same one, at most one was committed: one that others name, else perhaps none of them.

    Args:
        files: Without those that nobody names and whose predecessor is deleted: a newest file's never is.
        committed: The names of those that others name.
    """
    on: dict[str, list[MetadataFile]] = {}
    for file in files:
        on.setdefault(file.log[-1] if file.log else "", []).append(file)
    ends = []
    for parent, written in on.items():
        if any(file.name in committed for file in written):
            continue
        certain = [file for file in files if file.name == parent]
        ends += certain if len(written) > 1 and certain else written
    return ends


class PointerNotOursError(LakeboundError):
    """Which metadata file is a table's, its catalog alone decides."""

    def __init__(self, table: str) -> None:
        super().__init__(f"table {table}: its catalog writes the metadata itself, so nobody else can have it name another file")


def check_pointer(catalog: AnyCatalog, table: TableSpec, places: Places) -> None:
    """Check that a SQL catalog names the table's newest metadata; costs one listing of a folder where it does.

    A catalog that writes the metadata itself is not asked: it has its files where it wants.

    Args:
        catalog: Any catalog.
        table: The table.
        places: Where its files are.

    Raises:
        CatalogBehindError: It does not.
        TableUnreadableError: The file that it names is gone, and so is every newer one.
    """
    if not isinstance(catalog, LedgerCatalog):
        return
    for _ in range(_LOOKS):
        location = metadata_location(catalog, table)
        if location is None:
            return
        pointer = places.file_at(location)
        behind = judge(pointer.name, list(_read_from(pointer)))
        if behind is None and pointer.exists():
            return
        if metadata_location(catalog, table) != location:
            continue
        if behind is None:
            raise TableUnreadableError(table.id, f"the catalog names the metadata file {pointer}, which does not exist")
        newest = None if behind.newest is None else _beside(location, behind.newest)
        raise CatalogBehindError(table.id, location, newest, behind.names)


def check_forgotten(folder: Location, table: TableSpec) -> None:
    """Check that a folder in which a new table is to be made has no table that only the catalog has forgotten.

    A file that names another before it proves a commit. One that names none may be what a killed writer left.

    Args:
        folder: Of the metadata files.
        table: The table that is to be made.

    Raises:
        ForgottenTableError: It has one.
    """
    found = [file for file, _ in folder.list() if file.name.endswith(".metadata.json")]
    for file in sorted(found, key=lambda file: number_of(file.name), reverse=True):
        try:
            body = read_body(file)
            carries = any(ENTRY_KEY in snapshot.get("summary", {}) for snapshot in body.get("snapshots", []))
            committed = bool(body.get("metadata-log"))
        except _DAMAGED:
            continue
        if carries and committed:
            raise ForgottenTableError(table.id, str(file))


def move_pointer(catalog: AnyCatalog, table: TableSpec, named: str, newest: str) -> None:
    """Have the catalog name the newest metadata file in place of an older one, by compare-and-swap.

    Args:
        catalog: Of the table.
        table: The table.
        named: Address of the file that the catalog names.
        newest: Address of the file that it is to name.

    Raises:
        CommitRefusedError: The catalog names another file meanwhile.
        PointerNotOursError: The catalog writes the metadata itself.
    """
    if not isinstance(catalog, LedgerCatalog):
        raise PointerNotOursError(table.id)
    if not swap(catalog, table, named, newest):
        raise CommitRefusedError(table.id, "its catalog names another metadata file meanwhile")


def number_of(name: str) -> int:
    """Return the number of a metadata file's name; -1 where it has none."""
    number = name.partition("-")[0]
    return int(number) if number.isdigit() else -1


def _read_from(pointer: Location) -> Iterator[MetadataFile]:
    """Yield what the files say whose number is not lower; only where there are others are any read."""
    first = number_of(pointer.name)
    if first < 0:
        return
    names = [one.name for one in _beside_from(pointer, first) if number_of(one.name) >= first]
    if names == [pointer.name]:
        return
    for name in sorted(names):
        damaged = (FileNotFoundError,) if name == pointer.name else _DAMAGED
        try:
            body = read_body(pointer.parent / name)
            yield MetadataFile(
                name=name,
                number=number_of(name),
                table=str(body["table-uuid"]),
                log=tuple(entry["metadata-file"].rpartition("/")[2] for entry in body.get("metadata-log", [])),
                snapshots=frozenset(snapshot["snapshot-id"] for snapshot in body.get("snapshots", [])),
                current=body.get("current-snapshot-id"),
            )
        except damaged:
            continue  # a commit deleted it; or a killed writer left it unfinished, so it was never committed


def _beside_from(pointer: Location, first: int) -> Iterator[Location]:
    """Yield the metadata files beside one; of an object store only those whose number is not lower, as one list gives them."""
    if pointer.is_local:
        folder = pointer.parent.path
        found = (pointer.parent / one.name for one in folder.iterdir()) if folder.is_dir() else iter(())
    else:
        start = f"{first:05d}"
        # By their text: what follows 99,999 comes before it.
        found = (file for file, _ in pointer.parent.list(after=start if start[:-2].strip("9") else ""))
    for file in found:
        if file.name.endswith(".metadata.json"):
            yield file


def _beside(location: str, name: str) -> str:
    return f"{location.rpartition('/')[0]}/{name}"
