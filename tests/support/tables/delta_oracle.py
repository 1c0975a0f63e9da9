"""A Delta log read by hand: the live files and what the log says of each. Imports nothing of what it judges."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote


@dataclass(frozen=True)
class LoggedFile:
    """A file that a commit adds.

    Attributes:
        path: Where it is.
        partition: Text per partition column, as the log has it.
        statistics: Its statistics; numbers with a point are decimals.
    """

    path: Path
    partition: dict[str, str | None]
    statistics: dict[str, Any]


def live_delta_files(folder: Path) -> list[LoggedFile]:
    """Return the files of a table whose log holds all its commits."""
    live: dict[str, dict[str, Any]] = {}
    for commit in sorted((folder / "_delta_log").glob("*.json")):
        # One commit may remove a file and add it again: a restore does.
        actions = [json.loads(line) for line in commit.read_bytes().split(b"\n") if line]
        for action in actions:
            live.pop(action.get("remove", {}).get("path", ""), None)
        for action in actions:
            if "add" in action:
                live[action["add"]["path"]] = action["add"]
    return [_file(folder, body) for body in live.values()]


def added_delta_files(folder: Path) -> list[LoggedFile]:
    """Return each file that a commit ever added, as it told it."""
    lines = [line for commit in sorted((folder / "_delta_log").glob("*.json")) for line in commit.read_bytes().split(b"\n")]
    return [_file(folder, body["add"]) for line in lines if line and "add" in (body := json.loads(line))]


def live_statistics(folder: Path) -> list[dict[str, Any]]:
    """Return the statistics of each live file."""
    return [file.statistics for file in live_delta_files(folder)]


def _file(folder: Path, body: dict[str, Any]) -> LoggedFile:
    statistics = json.loads(body["stats"], parse_float=Decimal)
    return LoggedFile(folder / unquote(body["path"]), body["partitionValues"], statistics)
