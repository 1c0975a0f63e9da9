"""``make audit``: known vulnerabilities of the locked packages, from the OSV database or from a copy of it on disk.

Online, ``uv audit`` asks osv.dev. Where that is not possible it is said that nothing was asked: no answer is no good answer.
Offline, the copy is what OSV offers of an ecosystem (https://google.github.io/osv.dev/data/#data-dumps): a zip file, or a
folder, of one JSON file for each vulnerability.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from lakebound.errors import LakeboundError
from lakebound.local.locked_packages import as_script, locked_versions

FOUND, NOT_ASKED = 1, 2
"""Exit codes: there are vulnerabilities; nobody knows."""
COPY = "https://osv-vulnerabilities.storage.googleapis.com/PyPI/all.zip"
_ECOSYSTEM = "PyPI"
_NOT_ASKED = (
    "audit: NOT DONE: the OSV database (osv.dev) could not be asked, so nothing is known of the locked packages. Try again "
    f"with internet, or take a copy of the database where there is internet ({COPY}) and run `make audit OFFLINE=all.zip`"
)


class OsvCopyError(LakeboundError):
    """A file or folder is no copy of the OSV database."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(
            f"{path} is no copy of the OSV database's vulnerabilities of {_ECOSYSTEM}: {problem}. Take a copy from {COPY}, and "
            "give the zip file, or the folder into which it was unpacked"
        )


@dataclass(frozen=True)
class Vulnerability:
    """A known vulnerability of a locked package.

    Attributes:
        package: Name of the package.
        version: The locked version.
        id: Id in the database.
        aliases: Ids in other databases.
        summary: What it is, in a line.
        fixed: Versions in which it is fixed.
    """

    package: str
    version: str
    id: str
    aliases: tuple[str, ...]
    summary: str
    fixed: tuple[str, ...]

    def __str__(self) -> str:
        names = f"{self.id} ({', '.join(self.aliases)})" if self.aliases else self.id
        return f"{self.package} {self.version}: {names}: {self.summary}; fixed in: {', '.join(self.fixed) or 'no version'}"


def vulnerabilities(locked: Mapping[str, Iterable[str]], entries: Iterable[Mapping[str, Any]]) -> list[Vulnerability]:
    """Return which locked versions are vulnerable, by the entries of the database. Pure.

    Args:
        locked: Versions by the canonical name of the package.
        entries: In OSV's schema (https://ossf.github.io/osv-schema/); those that were withdrawn do not count.
    """
    found: dict[tuple[str, str, str], Vulnerability] = {}
    for entry in entries:
        if entry.get("withdrawn"):
            continue
        for affected in entry.get("affected", ()):
            name = _package(affected)
            for version in locked.get(name, ()):
                if is_affected(version, affected):
                    found[name, version, entry["id"]] = _vulnerability(name, version, entry, affected)
    return [found[key] for key in sorted(found)]


def is_affected(version: str, affected: Mapping[str, Any]) -> bool:
    """Return whether a version is one of those that an entry names. Pure.

    Args:
        version: Of a package.
        affected: The entry's item on the package. A range that cannot be compared with the version counts as containing it.
    """
    own = _comparable(version)
    if version in affected.get("versions", ()) or own in map(_comparable, affected.get("versions", ())):
        return True
    ranges = [one for one in affected.get("ranges", ()) if one.get("type") in ("ECOSYSTEM", "SEMVER")]
    return any(_is_within(own, one.get("events", ())) for one in ranges)


def _is_within(version: Version | str, events: Iterable[Mapping[str, str]]) -> bool:
    """Whether a version is in a range: the last event that is not above it decides."""
    steps = sorted(
        ((_comparable(at), kind) for event in events for kind, at in event.items() if kind != "limit"),
        key=lambda step: (step[0] if isinstance(step[0], Version) else _LOWEST, step[1] != "introduced"),
    )
    if not isinstance(version, Version) or any(not isinstance(at, Version) for at, _ in steps):
        return True
    inside = False
    for at, kind in steps:
        assert isinstance(at, Version)
        if kind == "introduced" and version >= at:
            inside = True
        elif (kind == "fixed" and version >= at) or (kind == "last_affected" and version > at):
            inside = False
    return inside


_LOWEST = Version("0.dev0")


def _comparable(version: str) -> Version | str:
    if version == "0":
        return _LOWEST  # OSV's name of what is below every version
    try:
        return Version(version)
    except InvalidVersion:
        return version


def _package(affected: Mapping[str, Any]) -> str:
    package = affected.get("package") or {}
    is_own = str(package.get("ecosystem", "")).partition(":")[0] == _ECOSYSTEM
    return canonicalize_name(str(package.get("name", ""))) if is_own else ""


def _vulnerability(name: str, version: str, entry: Mapping[str, Any], affected: Mapping[str, Any]) -> Vulnerability:
    events = [event for one in affected.get("ranges", ()) if one.get("type") != "GIT" for event in one.get("events", ())]
    details = str(entry.get("details", "")).strip().splitlines()
    summary = str(entry.get("summary") or (details[0] if details else "no description"))
    fixed = tuple(dict.fromkeys(str(event["fixed"]) for event in events if "fixed" in event))
    return Vulnerability(name, version, str(entry["id"]), tuple(entry.get("aliases", ())), summary, fixed)


def read_copy(path: Path) -> list[dict[str, Any]]:
    """Return the entries of a copy of the database.

    Args:
        path: The zip file, or a folder with its files.

    Raises:
        OsvCopyError: It is none.
    """
    try:
        entries = [json.loads(text) for text in _texts(path)]
    except (OSError, ValueError, zipfile.BadZipFile) as exc:
        raise OsvCopyError(path, str(exc)) from exc
    if not any(_package(affected) for entry in entries for affected in entry.get("affected", ())):
        raise OsvCopyError(path, f"it names no package of {_ECOSYSTEM}")
    return entries


def _texts(path: Path) -> Iterator[bytes]:
    if path.is_dir():
        yield from (file.read_bytes() for file in sorted(path.glob("*.json")))
        return
    with zipfile.ZipFile(path) as copy:
        yield from (copy.read(name) for name in copy.namelist() if name.endswith(".json"))


def audit_offline(lock: str, path: Path) -> int:
    """Print what a copy of the database knows of the locked packages; return the exit code.

    Args:
        lock: Text of the lock file.
        path: The copy.

    Raises:
        OsvCopyError: It is no copy of the database.
    """
    locked: dict[str, set[str]] = defaultdict(set)
    for name, version in locked_versions(lock):
        locked[canonicalize_name(name)].add(version)
    entries = read_copy(path)
    found = vulnerabilities(locked, entries)
    for one in found:
        print(one)
    newest = max(str(entry.get("modified", "")) for entry in entries)
    print(
        f"audit: {len(found)} known vulnerabilities in {len(locked)} locked packages, by a copy of the OSV database with "
        f"{len(entries)} entries, the newest of {newest[:10] or 'no date'}; it knows nothing that came later"
    )
    return FOUND if found else 0


def audit_online(lock: str, script: Path) -> int:
    """Have uv ask the OSV database; return the exit code.

    Args:
        lock: Text of the lock file.
        script: File that gets the packages in the form that uv takes.
    """
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(as_script(lock))
    command = ["uv", "audit", "--preview-features", "audit-command", "--no-config", "--script", str(script)]
    code = subprocess.run(command, check=False).returncode
    if code not in (0, FOUND):
        print(_NOT_ASKED, file=sys.stderr)
        return NOT_ASKED
    return code


def main(arguments: list[str]) -> int:
    """Audit the packages of a lock file; return the exit code."""
    parser = argparse.ArgumentParser(prog="make audit", description=__doc__)
    parser.add_argument("lock", type=Path, help="requirements.lock")
    parser.add_argument("--offline", type=Path, metavar="FILE", help="a copy of the OSV database, instead of asking it")
    options = parser.parse_args(arguments)
    lock = options.lock.read_text(encoding="utf-8")
    if options.offline is None:
        return audit_online(lock, Path(".lakebound") / "locked_packages.py")
    try:
        return audit_offline(lock, options.offline)
    except OsvCopyError as exc:
        print(f"audit: NOT DONE: {exc}", file=sys.stderr)
        return NOT_ASKED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
