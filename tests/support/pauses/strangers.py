"""What others do to a Delta table while a writer is suspended, a guest or a backup that is put back, and what is lost by it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties

from lakebound.ledger.entry import encode
from lakebound.operations.maintenance.engines import carried_entry
from lakebound.spec.table import TableSpec
from tests.support.pauses.actors import make_actors
from tests.support.pauses.file_operations import interposed
from tests.support.pauses.interleaving import Actor, Turn, interleave
from tests.support.pauses.oracle import Report, read_state
from tests.support.pauses.world import PausedWorld

GUEST_COMMITS = 210
Stranger = Callable[[PausedWorld], Actor]
_LOOK = "stat _delta_log"
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


def lost_commits(world: PausedWorld, stranger: Stranger, stops: Sequence[int], *, looks: int = 0) -> list[str]:
    """Return, per place at which the stream is suspended, the commits that it reported and that no reader sees.

    ``looks``: how often a commit looks at the log; what had done so for the last time when the stranger came is left out.
    """
    lost = []
    with interposed(world.live):
        for stop_at in stops:
            with world.run():
                actors = [*make_actors(world, ["stream"]), stranger(world)]
                interleave(actors, [Turn(0, stop_at), Turn(1), Turn(0)])
                assert actors[1].error is None, actors[1].error
                looked = sum(gate == _LOOK for gate in actors[0].gates[:stop_at])
                reports = world.reports[looked // looks :] if looks else world.reports
                lost += [f"suspended at {stop_at}: {one}" for one in not_seen(world, reports)]
    return lost


def not_seen(world: PausedWorld, reports: Sequence[Report]) -> list[str]:
    """Return what of the reports is not so, and what of the table cannot be read."""
    state = read_state("delta", world.lake, world.spec.name)
    wrong = list(state.broken)
    if len(set(state.rows)) != len(state.rows):
        wrong.append("rows are doubled")
    versions = {commit.commit: commit.version for commit in state.history}
    oldest = min(int(version) for version in versions.values())
    for report in reports:
        is_cleaned_up = report.commit not in versions and int(report.version) < oldest
        is_there = is_cleaned_up or versions.get(report.commit) == report.version
        if not is_there or not set(range(*report.landed)) <= set(state.rows):
            wrong.append(f"{report.actor} reported version {report.version}, which no reader sees")
    return wrong
