"""Where a pipeline's lease, desired state, progress and logs stand.

All of it is in a folder, or what other machines need to know is in an object store (``LAKEBOUND_STATE``): then those files are
``SharedFile``, and the rest stays in the folder.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from lakebound.control.shared_file import SharedFile
from lakebound.control.state_file import (
    LOCK_DEADLINE_SECONDS,
    MOST_BYTES,
    StateFile,
    change_text,
    files_in,
    locked,
    locked_if_free,
    modified_at,
    read_bytes,
    read_end,
    read_json,
    read_text,
    write_json,
    write_text,
)
from lakebound.spec.state_store import StateStoreSpec, installed_state_store
from lakebound.storage.location import Location

__all__ = [
    "LOCK_DEADLINE_SECONDS",
    "MOST_BYTES",
    "ControlFolder",
    "StateFile",
    "change_text",
    "files_in",
    "locked",
    "locked_if_free",
    "modified_at",
    "names_of_pipelines",
    "read_bytes",
    "read_end",
    "read_json",
    "read_text",
    "write_json",
    "write_text",
]

_WATCHER_SECONDS = 5.0
"""How often a store is asked by who watches a pipeline, at most."""


@dataclass(frozen=True)
class ControlFolder:
    """``<home>/pipelines/<pipeline>``; makes nothing by itself.

    Attributes:
        home: Folder of this machine's state.
        pipeline: Name of the pipeline.
        store: Where the state is that machines share; None: it is in the folder, too.
    """

    home: Path
    pipeline: str
    store: StateStoreSpec | None = field(default_factory=installed_state_store, repr=False)

    @property
    def folder(self) -> Path:
        """The folder of this machine: logs, checkpoints, rollups, and all else where nothing is shared."""
        return self.home / "pipelines" / self.pipeline

    @property
    def shared(self) -> StateFile:
        """What holds the files that other machines need to see."""
        if self.store is None:
            return self.folder
        return SharedFile(Location(f"{self.store.location}/pipelines/{self.pipeline}", self.store.store))

    @property
    def is_shared(self) -> bool:
        """Whether other machines see the state in an object store."""
        return self.store is not None

    def watched_every(self, seconds: float) -> float:
        """Return how often a watcher looks: so many seconds apart in a folder, at least five in a store."""
        return max(seconds, _WATCHER_SECONDS) if self.is_shared else seconds

    def exists(self) -> bool:
        """Whether there is any state of the pipeline."""
        shared = self.shared
        return shared.is_dir() if isinstance(shared, Path) else next(iter(shared.location.list()), None) is not None

    @property
    def lease(self) -> StateFile:
        """Who may write (``lakebound.control.lease``)."""
        return self.shared / "lease.json"

    @property
    def lease_silence(self) -> StateFile:
        """The sign of a lease that some machine has seen unchanged for longer than the lease lasts."""
        return self.shared / "lease-silence.json"

    @property
    def desired(self) -> StateFile:
        """What a person or a DAG wants (``lakebound.control.desired``)."""
        return self.shared / "desired.json"

    @property
    def desired_sign(self) -> StateFile:
        """Is there once a desired state was written: where only this is left, that one is lost."""
        return self.shared / "desired.sign"

    @property
    def progress(self) -> StateFile:
        """What the application last did (``lakebound.control.progress``)."""
        return self.shared / "progress.json"

    @property
    def complete_hours(self) -> StateFile:
        """Which hours of the tables are complete (``lakebound.control.complete_hours``)."""
        return self.shared / "complete-hours.json"

    @property
    def redone(self) -> StateFile:
        """Which offsets were redone last (``lakebound.control.redone``)."""
        return self.shared / "redone.json"

    @property
    def submission(self) -> StateFile:
        """The backend's record of the application that it submitted last."""
        return self.shared / "submission.json"

    @property
    def incidents(self) -> StateFile:
        """What went wrong and what was done about it (``lakebound.control.incidents``), one file each."""
        return self.shared / "incidents"

    @property
    def findings(self) -> StateFile:
        """What is wrong at this moment (``lakebound.control.findings``), one file per source."""
        return self.shared / "findings"

    @property
    def crash_loop(self) -> StateFile:
        """Which ends in a row landed nothing (``lakebound.control.crash_loop``)."""
        return self.shared / "crash-loop.json"

    @property
    def health_history(self) -> StateFile:
        """How the tables' health was over time (``lakebound.operations.maintenance.health_history``), one line per reading."""
        return self.shared / "health.jsonl"

    @property
    def rollups(self) -> Path:
        """What the pipeline did over time (``lakebound.control.rollup_files``): a file per resolution, and one of totals."""
        return self.folder / "rollups"

    @property
    def recent_ledger(self) -> StateFile:
        """The newest batches, and what all tables hold (``lakebound.control.recent_ledger``)."""
        return self.shared / "recent-ledger.json"

    @property
    def quarantine_samples(self) -> StateFile:
        """A few records that went to quarantine last (``lakebound.control.quarantine_samples``), where the YAML asks for it."""
        return self.shared / "quarantine-samples.json"

    @property
    def unknown_fields(self) -> StateFile:
        """Which fields of the newest records the schema does not name (``lakebound.control.unknown_fields``)."""
        return self.shared / "unknown-fields.json"

    @property
    def code_samples(self) -> StateFile:
        """What the newest two versions of the code made of the records (``lakebound.control.code_samples``)."""
        return self.shared / "code-samples.json"

    @property
    def schemas(self) -> StateFile:
        """Schemas of a registry with which records were written (``lakebound.control.kept_schemas``), one file each."""
        return self.shared / "schemas"

    @property
    def schemas_in_use(self) -> StateFile:
        """What the stream reads with, and what its columns come from (``lakebound.control.schemas_in_use``)."""
        return self.shared / "schemas-in-use.json"

    @property
    def table_history(self) -> StateFile:
        """To which times the tables can be rewound, and until when (``lakebound.control.table_history``)."""
        return self.shared / "table-history.json"

    @property
    def replays(self) -> StateFile:
        """How far replays and releases have got (``lakebound.control.replay_result``), one file each."""
        return self.shared / "replays"

    @property
    def outcomes(self) -> StateFile:
        """How applications ended, one file each."""
        return self.shared / "outcomes"

    @property
    def proof(self) -> StateFile:
        """What the last proof said (``lakebound.control.summaries``)."""
        return self.shared / "proof.json"

    @property
    def erased(self) -> StateFile:
        """Which rows were erased by decision (``lakebound.control.erased_record``)."""
        return self.shared / "erased.json"

    @property
    def maintenance_history(self) -> StateFile:
        """What maintenance runs did (``lakebound.operations.maintenance.past_reading``), one line per run."""
        return self.shared / "maintenance.jsonl"

    @property
    def repair(self) -> StateFile:
        """Locked while somebody repairs or rewinds the pipeline, and while a step of maintenance runs."""
        return self.shared / "repair"

    @property
    def maintenance(self) -> StateFile:
        """Locked while a maintenance run is under way."""
        return self.shared / "maintenance"

    def turn(self, table: str) -> StateFile:
        """While it is young, somebody asks the stream to hold its commits to a table back (``lakebound.control.turns``)."""
        return self.shared / "turns" / quote(table, safe="")

    def prepared(self, table: str) -> Path:
        """Commits to a table that maintenance hands to the stream (``lakebound.control.handover``)."""
        return self.folder / "prepared" / quote(table, safe="")

    def stop_marker(self, app_id: str) -> StateFile:
        """Its presence asks that one application to stop gracefully."""
        return self.shared / f"stop-{app_id}.json"

    def outcome(self, app_id: str) -> StateFile:
        """How that application ended (``lakebound.control.progress.Outcome``)."""
        return self.outcomes / f"{app_id}.json"

    def log(self, app_id: str) -> Path:
        """That application's log."""
        return self.folder / "logs" / f"{app_id}.log"

    def trace(self, app_id: str) -> Path:
        """Where an application's milliseconds went, batch by batch."""
        return self.folder / "logs" / f"{app_id}.trace.jsonl"

    def checkpoint(self, app_id: str) -> Path:
        """That application's scratch checkpoint."""
        return self.folder / "checkpoints" / app_id


def names_of_pipelines(home: Path) -> list[str]:
    """Return the names of the pipelines that have state, sorted."""
    shared = ControlFolder(home, "").shared
    if isinstance(shared, SharedFile):
        return _stored_names(shared.location.parent)
    root = home / "pipelines"
    return sorted(folder.name for folder in root.iterdir() if folder.is_dir()) if root.is_dir() else []


def _stored_names(root: Location) -> list[str]:
    """Return the first parts of the names of files, with one request for each of them."""
    names: list[str] = []
    after = ""
    while (found := next(iter(root.list(after=after)), None)) is not None:
        names.append(found[0].relative_to(root).partition("/")[0])
        after = f"{names[-1]}0"  # "0" comes after "/": the next pipeline
    return names
