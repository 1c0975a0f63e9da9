"""Other people's SQL on an Iceberg table, at each moment of a stream: every reader sees the right rows, or it is refused.

The short form takes a sample of the cells; ``LAKEBOUND_CHAOS=full`` (``make test-spark``) takes all.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

import pytest
from tests.support.catalogs.compacting import compaction
from tests.support.streams.long_form import LONG_FORM
from tests.support.tables.colleague import Colleague
from tests.support.tables.deeds import DEEDS, Deed, Rows
from tests.support.tables.local_tables import PIPELINE, Lander, landed_twice, lander, offsets, pipeline_over, rows
from tests.support.tables.restoring import reset, version_of

from lakebound.control.folder import ControlFolder
from lakebound.errors import (
    FilesOutdatedError,
    LakeboundError,
    NoLedgerError,
    TableFeatureError,
    TableMismatchError,
)
from lakebound.ledger.entry import common, count
from lakebound.operations.erase.apply import apply_erase
from lakebound.operations.erase.prepare import prepare
from lakebound.operations.maintenance.iceberg import rewrite
from lakebound.operations.maintenance.iceberg.rewrite import FileRewriter
from lakebound.spec.table import TableSpec
from lakebound.tables.commit import LedgerWentBackError
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.erasing import RowsNotInFilesError
from lakebound.tables.fitting import fit_rows
from lakebound.tables.iceberg.table import IcebergTable
from lakebound.tables.places import Places
from lakebound.tables.table import DataFile, VersionGoneError, open_table

pytestmark = pytest.mark.spark

MOMENTS = [
    *("before the start", "between two batches", "in a batch", "in a compaction", "in a rewind"),
    *("before an erasure", "in an erasure"),
]
ERASED = "id = 1"
CELLS = list(itertools.product(DEEDS, MOMENTS))
SAMPLE = CELLS if LONG_FORM else random.Random(3).sample(CELLS, 10)
_numbers = itertools.count()


@dataclass
class Cell:
    """A table that has landed [0, 10) and [10, 20), and what must be in it."""

    app: Lander
    colleague: Colleague
    at: Places
    deed: Deed
    monkeypatch: pytest.MonkeyPatch
    rows: Rows = field(default_factory=lambda: plain(0, 20))

    def do(self) -> None:
        name, before = self.app.table.spec.name, version_of(open_table(self.app.table.spec, self.at), 10).version
        self.colleague.does(*(one.replace("{name}", name).replace("{before}", before) for one in self.deed.statements))
        self.rows = self.deed.becomes(self.rows) if self.deed.becomes else self.rows

    def land(self) -> None:
        """Land what is missing up to 30, and write a batch again where that is asked."""
        for start, end in ((10, 20), (20, 30)):
            if not count(common(self.app.view.coverage, offsets(start, end))):
                self.commit(self.write(start, end), start, end)

    def start_again(self) -> None:
        self.app = lander(self.app.table.spec, self.at, epoch=self.app.epoch + 1)
        self.app.open()
        self.land()

    def write(self, start: int, end: int) -> list[DataFile]:
        """Write a batch as the stream does: for the columns that its handle knows."""
        table = self.app.table
        return write_data_files(fit_rows(rows(start, end), table.schema()), table.layout(), "batch")

    def commit(self, files: list[DataFile], start: int = 20, end: int = 30) -> None:
        try:
            self.app.land(start, end, files)
        except FilesOutdatedError:
            ended["a batch was written again"] += 1
            self.app.view = self.app.table.read_ledger()
            self.app.land(start, end, self.write(start, end))
        except LedgerWentBackError:
            assert self.deed.goes_back
            ended["the ledger went back, and the next start landed again"] += 1
            self.start_again()
            return
        self.rows = [*self.rows, *plain(start, end)]

    def before_the_start(self) -> None:
        self.do()
        self.start_again()

    def between_two_batches(self) -> None:
        self.do()
        self.land()

    def in_a_batch(self) -> None:
        files = self.write(20, 30)
        self.do()
        self.commit(files)

    def in_a_compaction(self) -> None:
        replace = rewrite.replace

        def after_deed(*arguments: object) -> int:
            self.do()
            return replace(*arguments)  # type: ignore[arg-type]

        self.monkeypatch.setattr(rewrite, "replace", after_deed)
        rewriter = FileRewriter(self.at, ControlFolder(self.at.home, PIPELINE))
        try:
            rewriter.compact(self.app.table.spec, compaction(self.app.table.spec))
        except TableFeatureError:
            raise
        except LakeboundError:
            ended["compaction was lost, nothing changed"] += 1
        self.app.view = self.app.table.read_ledger()
        self.land()

    def in_a_rewind(self) -> None:
        version = version_of(self.app.table, 10).version
        self.do()
        table = open_table(self.app.table.spec, self.at)
        try:
            table.restore(version, reset(10, 2))
        except VersionGoneError:
            ended["rewind was refused: its version had expired"] += 1
        else:
            self.rows = plain(0, 10)
            self.rows = self.deed.becomes(self.rows) if self.deed.becomes and self.deed.of_columns else self.rows
        self.app = lander(self.app.table.spec, self.at, epoch=3)
        self.land()

    def before_an_erasure(self) -> None:
        self.do()
        self.erase()
        self.start_again()

    def in_an_erasure(self) -> None:
        """Erase while the colleague writes: what comes after the look at the table comes after the erasure."""
        take_out, left, before = IcebergTable.take_out, [self.do], self.rows

        def after_deed(*arguments: object) -> str:
            while left:
                left.pop()()
            return take_out(*arguments)  # type: ignore[arg-type]

        self.monkeypatch.setattr(IcebergTable, "take_out", after_deed)
        try:
            self.erase()
        except LedgerWentBackError:
            assert self.deed.goes_back
            ended["the ledger went back, and the rows were erased again"] += 1
            self.erase()
        if self.deed.becomes and not self.deed.goes_back:
            made = self.deed.becomes(before)
            self.rows += made[len(before) :] if made[: len(before)] == before else []
        self.start_again()

    def erase(self) -> None:
        pipeline = pipeline_over(self.app.table.spec)
        plan = prepare(pipeline, self.at, ERASED)
        apply_erase(pipeline, self.at, ERASED, plan.hash, below=plan.below, by="a test")
        self.rows = [row for row in self.rows if row["id"] != 1]


ended: Counter[str] = Counter()
"""How many cells ended how."""


def plain(start: int, end: int) -> Rows:
    """Return the rows that a batch lands, by a reckoning of its own."""
    return [{"id": n, "city": f"city {n % 3}"} for n in range(start, end)]


@pytest.fixture(scope="module", autouse=True)
def told() -> Iterator[None]:
    yield
    print(f"\n{len(SAMPLE)} cells: {dict(ended)}")


@pytest.fixture
def make(at: Places, pool: ProcessPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> Callable[[Deed], Cell]:
    def made(deed: Deed) -> Cell:
        spec = TableSpec(format="iceberg", name=f"hands.t{next(_numbers)}")
        app = landed_twice(spec, at)
        return Cell(app, Colleague(pool, spec, at), at, deed, monkeypatch)

    return made


@pytest.mark.parametrize(("deed", "moment"), SAMPLE, ids=str)
def test_every_reader_sees_the_right_rows_or_the_feature_is_refused(
    make: Callable[[Deed], Cell], deed: Deed, moment: str
) -> None:
    cell = make(deed)
    try:
        getattr(cell, moment.replace(" ", "_"))()
    except (TableFeatureError, TableMismatchError, NoLedgerError, RowsNotInFilesError) as exc:
        name = deed.unerasable if isinstance(exc, RowsNotInFilesError) and deed.unerasable else deed.refused
        assert name and name in str(exc)
        ended["refused by name"] += 1
    else:
        assert not deed.refused or (deed.keeps_history and moment == "in a rewind")
        assert not (deed.unerasable and "erasure" in moment)
        assert open_table(cell.app.table.spec, cell.at).read_ledger().coverage == offsets(0, 30)
        ended["right"] += 1
    if moment == "in a rewind" and deed.refused:
        assert {row["id"] for row in cell.rows} >= {0, 9}
    if deed.refused.endswith("-impl"):
        # PyIceberg would load what it names, in the reader as well.
        cell.colleague.does(f"ALTER TABLE {{t}} UNSET TBLPROPERTIES ('{deed.refused}')")
    wanted = sorted(cell.rows, key=lambda row: row["id"])
    for reader, found in cell.colleague.readers(("id", "city")):
        assert found == wanted, reader
