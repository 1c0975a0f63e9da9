"""The commit of rewritten files is tried for a bounded time; the files go with it where nothing can be in the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.tables.local_tables import genesis

from lakebound.control.folder import ControlFolder
from lakebound.errors import CatalogUnavailableError, CommitRefusedError
from lakebound.operations.maintenance.engines import StepLostError
from lakebound.operations.maintenance.iceberg import replacement
from lakebound.operations.maintenance.iceberg.replacement import Replacement, replace
from lakebound.storage.location import Location
from lakebound.tables.iceberg.live_files import KnownManifests

TABLE = "iceberg:shop.orders"
REFUSED = CommitRefusedError(TABLE, "somebody was faster")
UNKNOWN = CatalogUnavailableError("http://catalog", "no answer")


class FakeTable:
    """Raises its answers one after the other; None is a commit."""

    def __init__(self, answers: Iterator[Exception | None], *, are_refused: bool = True) -> None:
        self.spec = SimpleNamespace(id=TABLE)
        self.answers = answers
        self.are_refused = are_refused
        self.asked = 0

    def read_ledger(self) -> Any:
        return SimpleNamespace(entry=genesis())

    def replace_files(self, *_: object) -> str:
        self.asked += 1
        answer = next(self.answers)
        if answer is not None:
            raise answer
        return "1"

    def delete_refused(self) -> bool:
        if isinstance(self.are_refused, Exception):
            raise self.are_refused
        return self.are_refused


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "compacted.parquet"
    made.touch()
    return made


@pytest.fixture
def commit(tmp_path: Path, file: Path) -> Callable[..., int]:
    def run(table: FakeTable, ends_at: float = 0.0) -> int:
        files: Any = [SimpleNamespace(path=Location(str(file)))]
        return replace(table, Replacement({"/a"}, files, ends_at), KnownManifests(), ControlFolder(tmp_path, "orders"))  # type: ignore[arg-type]

    return run


def test_a_step_that_has_used_up_its_time_tries_for_a_while_and_then_ends(
    commit: Callable[..., int], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter(range(0, 10_000, 20))
    monkeypatch.setattr(replacement.time, "monotonic", lambda: float(next(now)))
    monkeypatch.setattr(replacement, "_LONGEST_WAIT_SECONDS", 0.0)
    table = FakeTable(repeat(REFUSED))
    with pytest.raises(StepLostError, match="refused 2 times") as lost:
        commit(table)
    assert (table.asked, lost.value.conflicts) == (2, 2) and not file.exists()
    file.touch()
    with pytest.raises(StepLostError, match="refused 18 times"):
        commit(FakeTable(repeat(REFUSED)), ends_at=400.0 + next(now))


def test_it_is_tried_a_bounded_number_of_times(commit: Callable[..., int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replacement, "_LONGEST_WAIT_SECONDS", 0.0)
    assert commit(FakeTable(iter([REFUSED, UNKNOWN, REFUSED, UNKNOWN, None]))) == 4
    with pytest.raises(StepLostError, match="refused 60 times"):
        commit(FakeTable(repeat(REFUSED)))


@pytest.mark.parametrize("are_refused", [True, False, OSError("the catalog is away")])
def test_the_new_files_go_only_where_all_attempts_were_refused_for_certain(
    commit: Callable[..., int], file: Path, are_refused: Any
) -> None:
    with pytest.raises(CatalogUnavailableError):
        commit(FakeTable(iter([UNKNOWN] * 3), are_refused=are_refused))
    assert file.exists() is (are_refused is not True)
