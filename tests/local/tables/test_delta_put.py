"""A commit follows the very commit that it was made for, before its put and after it, or it is refused."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.power.disk import states
from tests.support.power.oracle import read_delta
from tests.support.power.recording import Recording
from tests.support.power.stories import up_to
from tests.support.tables.local_tables import Lander, draft, landed_offsets, lander, make_table
from tests.support.tables.maintained import small_commits

from lakebound.errors import CommitRefusedError
from lakebound.operations.maintenance.delta.engine import DeltaEngine
from lakebound.operations.maintenance.steps import CheckpointLog, CleanLog
from lakebound.spec.table import TableSpec
from lakebound.tables.commit import LedgerWentBackError
from lakebound.tables.delta.open import open_at
from lakebound.tables.places import Places

SPEC = TableSpec(format="delta", name="shop.orders")


@pytest.fixture
def app(at: Places) -> Lander:
    """An application whose table stands at version 1."""
    return small_commits(SPEC, at, 1)


def others_go_on_and_the_log_is_cleaned(at: Places) -> None:
    other = lander(SPEC, at)
    for offset in range(1, 8):
        other.land(offset, offset + 1)
    DeltaEngine(at).checkpoint_log(SPEC, CheckpointLog(table=SPEC.id, reason="a test"))
    other.land(8, 9)
    assert DeltaEngine(at).clean_log(SPEC, CleanLog(table=SPEC.id, reason="a test", before_version=8)).removed
    assert not commit_files(at, 2)


def commit_files(at: Places, version: int) -> list[Path]:
    return list((at.delta_path(SPEC) / "_delta_log").glob(f"{version:020d}.json"))


def dropped_and_created_again(at: Places) -> None:
    shutil.rmtree(at.delta_path(SPEC))
    small_commits(SPEC, at, 1, start=500)


def dropped_and_created_again_without_commits(at: Places) -> None:
    shutil.rmtree(at.delta_path(SPEC))
    make_table(SPEC, at)


CHANGES: list[Callable[[Places], None]] = [
    others_go_on_and_the_log_is_cleaned,
    dropped_and_created_again,
    dropped_and_created_again_without_commits,
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_commit_onto_a_log_that_is_another_one_now_is_refused(
    change: Callable[[Places], None], app: Lander, at: Places
) -> None:
    change(at)
    before = landed_offsets(lander(SPEC, at).table)
    with pytest.raises(CommitRefusedError):
        app.table.commit([], draft(20, 21))
    assert landed_offsets(lander(SPEC, at).table) == before


def put_back_from_a_copy(at: Places) -> None:
    folder = at.delta_path(SPEC)
    aside = folder.rename(folder.with_name("aside"))
    shutil.copytree(aside, folder)


def freeze_before_the_put(change: Callable[[Places], None], at: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """Suspend the next writer between its checks and its put, while something happens to the table."""
    link = os.link

    def frozen(*args: Any, **options: Any) -> None:
        monkeypatch.setattr(os, "link", link)
        change(at)
        link(*args, **options)

    monkeypatch.setattr(os, "link", frozen)


@pytest.mark.parametrize("change", [*CHANGES, put_back_from_a_copy])
def test_a_writer_that_was_frozen_just_before_its_put_reports_no_success(
    change: Callable[[Places], None], app: Lander, at: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name is free, so the put itself succeeds: below the log that is kept, or in a folder that nobody reads any more."""
    files, link = app.write(20, 21), os.link
    freeze_before_the_put(change, at, monkeypatch)
    with pytest.raises((CommitRefusedError, FileNotFoundError)):
        app.table.commit(files, draft(20, 21))
    assert os.link is link
    assert 20 not in landed_offsets(lander(SPEC, at).table)


def test_a_table_put_back_from_a_backup_under_a_running_stream_ends_it(app: Lander, at: Places, tmp_path: Path) -> None:
    folder, backup = at.delta_path(SPEC), tmp_path / "backup"
    shutil.copytree(folder, backup)
    for offset in range(1, 4):
        app.land(offset, offset + 1)
    shutil.rmtree(folder)
    shutil.copytree(backup, folder)
    with pytest.raises(LedgerWentBackError):
        app.land(4, 5)
    again = lander(SPEC, at)
    assert again.view.coverage["orders"].partitions == {0: ((0, 1),)}
    again.land(1, 5)
    assert landed_offsets(again.table) == list(range(5))


def test_a_new_table_is_not_put_into_the_rest_of_another_ones_log(at: Places) -> None:
    small_commits(SPEC, at, 3)
    for path in commit_files(at, 0):
        path.unlink()
    with pytest.raises(CommitRefusedError, match="has commits already, the first of them version 1"):
        make_table(SPEC, at)


def test_a_creation_that_was_frozen_just_before_its_put_reports_no_success(at: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process made the table meanwhile, and its log was cleaned: version 0 is free again."""

    def made_by_another(at: Places) -> None:
        small_commits(SPEC, at, 1)
        others_go_on_and_the_log_is_cleaned(at)

    freeze_before_the_put(made_by_another, at, monkeypatch)
    with pytest.raises(CommitRefusedError, match="has commits already"):
        make_table(SPEC, at)
    assert landed_offsets(lander(SPEC, at).table) == list(range(9))


def test_a_commit_of_somebody_else_is_on_the_disk_before_ours_that_follows_it(
    app: Lander, at: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """deltalake syncs nothing: were its commit empty after a power cut and ours whole, the log would have a hole."""
    recording = Recording(at.home)
    with recording.running(monkeypatch):
        open_at(at.folder(SPEC)).alter.set_table_properties({"delta.logRetentionDuration": "interval 9 days"})
        again = lander(SPEC, at)
        again.land(1, 2)
        recording.reached("ours")
    left = [state for state in states(recording.events, seed=1, most=1000) if state.mark == "ours"]
    assert left
    for state in left:
        state.put_at(at.home)
        assert read_delta(at.delta_path(SPEC)) == up_to(2)
