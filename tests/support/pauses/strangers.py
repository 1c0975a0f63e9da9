"""What others do to a Delta table at once, while a writer is suspended: a guest and its clean-up, a backup that is put back."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties

from lakebound.ledger.entry import encode
from lakebound.operations.maintenance.engines import carried_entry
from lakebound.spec.table import TableSpec
from tests.support.pauses.interleaving import Actor
from tests.support.pauses.world import PausedWorld

GUEST_COMMITS = 210
_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


def prepare_guest(world: PausedWorld, *, carries_entry: bool) -> Path:
    """Return the log to which a guest's commits and a clean-up lead from the start's state.

    Args:
        world: The table.
        carries_entry: Whether the last of the commits carries the entry on, as Lakebound's own maintenance does.
    """
    with world.run():
        folder = _folder(world)
        table = DeltaTable(str(folder))
        entry = encode(carried_entry(world.spec, world.world.at))
        for number in range(GUEST_COMMITS):
            is_carrying = carries_entry and number == GUEST_COMMITS - 1
            table.alter.set_table_properties(
                {"delta.logRetentionDuration": f"interval {number + 1} days"},
                commit_properties=CommitProperties(custom_metadata={"userMetadata": entry} if is_carrying else None),
                post_commithook_properties=_NO_HOOKS,
            )
        table.create_checkpoint()
        made = world.folder / f"guest-{carries_entry}"
        shutil.rmtree(made, ignore_errors=True)
        shutil.copytree(folder / "_delta_log", made)
    for path in made.glob("*.json"):
        if int(path.stem) < table.version():
            path.with_suffix(".old").write_bytes(b"")
    return made


def guest(world: PausedWorld, made: Path) -> Actor:
    """Return the guest that commits them, and the clean-up that deletes what is below, the oldest first."""
    log = _folder(world) / "_delta_log"

    def commit_and_clean() -> None:
        for path in sorted(made.glob("*.json")):
            if not (log / path.name).exists():
                shutil.copyfile(path, log / path.name)
        for path in (*made.glob("*.parquet"), made / "_last_checkpoint"):
            shutil.copyfile(path, log / path.name)
        for path in sorted(made.glob("*.old")):
            (log / f"{path.stem}.json").unlink(missing_ok=True)

    return Actor("guest", commit_and_clean)


def live_guest(world: PausedWorld, commits: int) -> Actor:
    """Return a guest that commits on top of whatever is there, and cleans the log below its last commit."""

    def commit_and_clean() -> None:
        table = DeltaTable(str(_folder(world)))
        for number in range(commits):
            table.alter.set_table_properties(
                {"delta.logRetentionDuration": f"interval {number + 1} days"}, post_commithook_properties=_NO_HOOKS
            )
        table.create_checkpoint()
        for path in sorted((_folder(world) / "_delta_log").glob("*.json")):
            if int(path.stem) < table.version():
                path.unlink()

    return Actor("guest", commit_and_clean)


def take_backup(world: PausedWorld, *, is_current: bool) -> Path:
    """Return a copy of the table's folder: as it is, or as it was one commit ago."""
    made = world.folder / f"backup-{is_current}"
    shutil.rmtree(made, ignore_errors=True)
    with world.run():
        shutil.copytree(_folder(world), made)
    if not is_current:
        max((made / "_delta_log").glob("*.json")).unlink()
    return made


def put_back(world: PausedWorld, made: Path, *, in_place: bool) -> Actor:
    """Return who puts the backup back: another folder under the name, or the same one with the log's files replaced."""
    folder = _folder(world)

    def replace_folder() -> None:
        shutil.copytree(made, folder.with_name("restored"))
        os.rename(folder, folder.with_name("moved_away"))
        os.rename(folder.with_name("restored"), folder)

    def replace_files() -> None:
        for path in sorted((folder / "_delta_log").glob("*.json"), reverse=True):
            if not (made / "_delta_log" / path.name).exists():
                path.unlink()
        for path in sorted((made / "_delta_log").glob("*.json")):
            shutil.copyfile(path, folder / "_delta_log" / path.name)

    return Actor("backup", replace_files if in_place else replace_folder)


def _folder(world: PausedWorld) -> Path:
    return folder_of(world.lake, world.spec)


def folder_of(lake: Path, spec: TableSpec) -> Path:
    """Return the folder of a Delta table."""
    return lake / "delta" / spec.namespace / spec.short_name
