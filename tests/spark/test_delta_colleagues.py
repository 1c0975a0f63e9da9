"""Ordinary SQL by colleagues × each moment of ours: Spark then reads what it should, or the refusal has the right name."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.streams.long_form import LONG_FORM, each_value_once, only_in_long_form
from tests.support.tables.delta_colleagues import COLLEAGUES, Colleague, Row, do, files_of, give, id_city, read_all
from tests.support.tables.local_tables import Lander, draft, landed_twice, lander, pipeline_over, places, rows
from tests.support.tables.maintained import compaction

from lakebound.errors import LakeboundError
from lakebound.operations.erase.apply import apply_erase
from lakebound.operations.erase.prepare import prepare
from lakebound.operations.maintenance.delta import rewrite
from lakebound.operations.maintenance.delta.engine import DeltaEngine
from lakebound.operations.maintenance.engines import StepLostError
from lakebound.operations.maintenance.steps import Vacuum
from lakebound.spec.table import TableSpec
from lakebound.tables.delta import table as delta_table
from lakebound.tables.delta.open import FilesOutsideError, open_at
from lakebound.tables.delta.table import DeltaLakeTable
from lakebound.tables.misread import Misreading
from lakebound.tables.places import Places
from lakebound.tables.table import open_table

SPEC = TableSpec(format="delta", name="shop.orders")
CHOSEN = COLLEAGUES if LONG_FORM else tuple(one for one in COLLEAGUES if one.is_sampled)
MOMENTS = (
    *("start", "batches", "in flight", "compaction", "during compaction", "vacuum", "rewind"),
    *("erasure", "during erasure"),
)
ERASED = "id = 1"

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Template:
    """A table to which a colleague has done something.

    Attributes:
        base: The table before.
        folder: The table after.
        files: That the colleague's commits have brought.
        rows: That Spark reads after.
    """

    base: Path
    folder: Path
    files: set[Path]
    rows: list[Row]


@dataclass(frozen=True)
class Cell:
    """A copy of the table before, and an application that knows it."""

    at: Places
    app: Lander
    template: Template

    @property
    def folder(self) -> Path:
        return self.at.delta_path(SPEC)

    def colleague(self) -> None:
        give(self.template.folder, self.template.files, self.folder)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with the ids 0 to 19 in two files."""
    at = places(tmp_path_factory.mktemp("base"))
    landed_twice(SPEC, at)
    return at.delta_path(SPEC)


@pytest.fixture(scope="module", params=CHOSEN, ids=lambda one: one.name)
def colleague(request: pytest.FixtureRequest) -> Colleague:
    found: Colleague = request.param
    return found


@pytest.fixture(scope="module")
def template(colleague: Colleague, base: Path, pool: ProcessPoolExecutor, tmp_path_factory: pytest.TempPathFactory) -> Template:
    folder = tmp_path_factory.mktemp("template") / "orders"
    shutil.copytree(base, folder)
    before = files_of(folder)
    found = pool.submit(do, str(folder), colleague.statements).result(timeout=600)
    return Template(base, folder, files_of(folder) - before, found)


@pytest.fixture(scope="module")
def ended() -> Iterator[Counter[str]]:
    found: Counter[str] = Counter()
    yield found
    print(f"\ncells: {sum(found.values())}: {dict(found)}")


@pytest.fixture
def cell(template: Template, tmp_path: Path) -> Cell:
    at = places(tmp_path)
    shutil.copytree(template.base, at.delta_path(SPEC))
    return Cell(at, lander(SPEC, at), template)


@each_value_once
@pytest.mark.parametrize("moment", MOMENTS)
def test_rows_are_right_or_it_is_refused(
    moment: str,
    colleague: Colleague,
    cell: Cell,
    pool: ProcessPoolExecutor,
    ended: Counter[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refusal, work, expected = prepared(moment, colleague, cell, monkeypatch)
    version = None
    try:
        work()
        outcome = "done"
    except StepLostError as exc:  # maintenance that others overtook: it is planned again
        assert moment == "during compaction", exc
        outcome, expected = "given up", cell.template.rows
    except LakeboundError as exc:
        assert refusal, f"{moment}: {exc}"
        assert re.search(refusal, str(exc)), exc
        outcome, expected, version = "refused", cell.template.rows, newest(cell.template.folder)
    else:
        assert not refusal, f"{moment}: not refused"
    if version is not None:
        assert newest(cell.folder) == version, "nothing was written"
    assert pool.submit(read_all, [str(cell.folder)]).result(timeout=600)[0] == expected
    ended[f"{moment}: {outcome}"] += 1


def test_a_proof_reads_the_rows_that_spark_reads_and_blames_no_work_of_spark(
    colleague: Colleague, template: Template, tmp_path: Path
) -> None:
    at = places(tmp_path)
    shutil.copytree(template.folder, at.delta_path(SPEC))
    table = open_table(SPEC, at)
    if colleague.replace == "SHALLOW CLONE":
        with pytest.raises(FilesOutsideError):
            table.scan_kafka()
        return
    ours = sorted(offset for offset in table.scan_kafka()["offset"].to_pylist() if offset is not None)
    assert ours == sorted(number for number, _ in template.rows if number < 20)
    look = table.misread_columns()
    assert (look.misread, look.undecided) == ((), ())


@only_in_long_form  # shortly: the proof above, of what was renamed and added
def test_files_that_spark_writes_with_column_mapping_are_read_as_they_were_meant(
    base: Path, pool: ProcessPoolExecutor, tmp_path: Path
) -> None:
    at = places(tmp_path)
    shutil.copytree(base, at.delta_path(SPEC))
    rename = next(one for one in COLLEAGUES if one.name == "rename and add")
    work = (
        *rename.statements,
        "INSERT INTO {t} (id, city, town) VALUES (30, 'c', 't')",
        "UPDATE {t} SET city = 'x' WHERE id = 3",
    )
    found = pool.submit(do, str(at.delta_path(SPEC)), work).result(timeout=600)
    assert [city for number, city in found if number in (3, 30)] == ["x", "c"]
    assert open_table(SPEC, at).misread_columns().misread == ()


def test_the_runbooks_statement_brings_values_back_that_readers_show_in_another_column(
    base: Path, pool: ProcessPoolExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = places(tmp_path)
    shutil.copytree(base, at.delta_path(SPEC))
    rename = next(one for one in COLLEAGUES if one.name == "rename and add")
    pool.submit(do, str(at.delta_path(SPEC)), rename.statements).result(timeout=600)
    with monkeypatch.context() as patch:  # as versions landed that did not look at features
        patch.setattr(delta_table, "check_may", lambda *_: None)
        patch.setattr(delta_table.DeltaLakeTable, "_check_fit", lambda *_: None)
        lander(SPEC, at).land(20, 30)
    (misread,) = open_table(SPEC, at).misread_columns().misread
    assert misread.misreading == Misreading("city", "city", "town")
    page = Path(__file__).parents[2] / "include" / "runbooks" / "proof-failed.md"
    ((statement,),) = (re.findall(r"```sql\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL),)
    for name, value in (("/path/of/the/file.parquet", str(at.delta_path(SPEC) / misread.file)), ("INTO T ", "INTO {t} AS T ")):
        statement = statement.replace(name, value)
    for name, value in (("C", "city"), ("D", "city"), ("W", "town")):
        statement = re.sub(rf"\b{name}\b", value, statement)
    found = pool.submit(do, str(at.delta_path(SPEC)), (statement,)).result(timeout=600)
    assert [row for row in found if row[0] >= 20] == id_city(rows(20, 30))
    assert open_table(SPEC, at).misread_columns().misread == ()


def prepared(
    moment: str, colleague: Colleague, cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, Callable[[], object], list[Row]]:
    """Return by what name it is refused, what is done, and what Spark reads then."""
    theirs, batch = cell.template.rows, id_city(rows(20, 30))
    landed = sorted([*theirs, *batch], key=lambda row: row[0])
    if moment == "start":
        cell.colleague()
        # Its files are made for the table as it is: another partitioning is the comparison's with the YAML.
        refusal = (
            "" if colleague.statements[0].startswith("overwrite") or "has changed" in colleague.append else colleague.append
        )
        return refusal, lambda: started(cell), landed
    if moment == "batches":
        # The application knows the table as it was, and writes with what it knows.
        cell.colleague()
        return colleague.append, lambda: cell.app.land(20, 30), landed
    if moment == "in flight":
        files = cell.app.write(20, 30)
        cell.colleague()
        return colleague.append, lambda: cell.app.land(20, 30, files), landed
    if moment == "compaction":
        cell.colleague()
        return colleague.replace, lambda: DeltaEngine(cell.at).compact(SPEC, compaction(SPEC)), theirs
    if moment == "during compaction":
        monkeypatch.setattr("lakebound.operations.maintenance.delta.engine.replace", after(cell))
        return colleague.meanwhile, lambda: DeltaEngine(cell.at).compact(SPEC, compaction(SPEC)), theirs
    if moment == "vacuum":
        cell.colleague()
        for path in cell.folder.rglob("*"):
            os.utime(path, (time.time() - 30 * 86400,) * 2)
        step = Vacuum(table=SPEC.id, reason="a test", mode="full", retention_seconds=72 * 3600)
        return colleague.vacuum, lambda: DeltaEngine(cell.at).vacuum(SPEC, step), theirs
    if moment.endswith("erasure"):
        if moment == "during erasure":
            monkeypatch.setattr(DeltaLakeTable, "take_out", once_after(cell, DeltaLakeTable.take_out))
        else:
            cell.colleague()
        is_over = moment == "during erasure" and colleague.erasure == "nothing to erase"
        return "" if is_over else colleague.refused_erasure, lambda: erase(cell), [row for row in theirs if row[0] != 1]
    version = open_at(cell.at.folder(SPEC)).version() - 1
    entry = next(one.entry for one in cell.app.table.entries() if one.version == str(version))
    cell.colleague()
    reset = draft(0, 0, kind="reset").model_copy(update={"coverage": entry.coverage})
    return colleague.restore, lambda: open_table(SPEC, cell.at).restore(str(version), reset), id_city(rows(0, 10))


def started(cell: Cell) -> None:
    fresh = lander(SPEC, cell.at, epoch=2)
    fresh.open()
    fresh.land(20, 30)


def erase(cell: Cell) -> None:
    pipeline = pipeline_over(SPEC)
    plan = prepare(pipeline, cell.at, ERASED)
    apply_erase(pipeline, cell.at, ERASED, plan.hash, below=plan.below, by="a test")


def once_after(cell: Cell, take_out: Callable[..., str]) -> Callable[..., str]:
    """Return the commit of an erasure, before whose first attempt the colleague commits."""
    left = [cell.colleague]

    def taken_out(*args: object) -> str:
        while left:
            left.pop()()
        return take_out(*args)

    return taken_out


def after(cell: Cell) -> Callable[..., object]:
    real = rewrite.replace

    def replace(*args: object, **named: object) -> object:
        cell.colleague()
        return real(*args, **named)  # type: ignore[arg-type]

    return replace


def newest(folder: Path) -> int:
    return max(int(path.stem) for path in (folder / "_delta_log").glob("*.json"))
