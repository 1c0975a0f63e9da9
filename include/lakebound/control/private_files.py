"""Who may enter the state folder: its owner alone, or also its group (``LAKEBOUND_STATE_ACCESS=group``).

Folders get mode 0700 and files 0600, whatever the umask is; for a group 0770 and 0660. ``LAKEBOUND_HOME`` itself may be passed
through (0711): by default the tables lie in it, and their readers are other users.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from lakebound.control.person import user_name
from lakebound.settings import Settings, load_settings, state_is_shared

STATE_FOLDERS = ("pipelines", "alerts", "reports", "embedded", "airflow")
"""The folders of LAKEBOUND_HOME that hold state. The tables' folder is none of them."""

_PASS_THROUGH = 0o011


def folder_mode() -> int:
    """Return the mode of a folder of state."""
    return 0o770 if state_is_shared() else 0o700


def file_mode() -> int:
    """Return the mode of a file of state."""
    return 0o660 if state_is_shared() else 0o600


def make_private_folder(path: Path) -> None:
    """Make a folder of state, and those above it that are missing."""
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        if not path.is_dir():
            raise
        return
    except FileNotFoundError:
        _make_above(path.parent)
        make_private_folder(path)
        return
    if state_is_shared():
        os.chmod(path, _with_set_group_id(path, folder_mode()))


def make_home(home: Path) -> None:
    """Make LAKEBOUND_HOME: others may pass through to the tables, and list nothing."""
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            home.mkdir(mode=0o700)
            os.chmod(home, _with_set_group_id(home, folder_mode() | _PASS_THROUGH))


def open_private(path: Path, mode: str) -> IO[Any]:
    """Open a file of state; a new one, and an older one of this user, is for nobody else."""
    return open(path, mode, opener=_private)


def make_private(descriptor: int) -> None:
    """Give an open file the mode of state where it is this user's."""
    found = os.fstat(descriptor)
    if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) != file_mode():
        os.fchmod(descriptor, file_mode())


def tighten(home: Path) -> None:
    """Close folders of state that an earlier release left open to everybody.

    A folder in which another user has files is left as it is: that user's processes would be shut out. ``lakebound check``
    names it (``open_folders``).
    """
    for folder in _folders(home):
        with suppress(OSError):
            if _is_open(folder) and not _shared_with(folder):
                os.chmod(folder, _with_set_group_id(folder, folder_mode()))


def open_folders(settings: Settings) -> list[str]:
    """Return a sentence for each folder of state that others may enter or replace, and that no start closes by itself."""
    home, found = settings.home, []
    with suppress(OSError):
        mode = home.stat().st_mode
        others = stat.S_IWOTH if state_is_shared() else stat.S_IWOTH | stat.S_IWGRP
        if mode & others and not mode & stat.S_ISVTX:
            found.append(
                f"{home} (LAKEBOUND_HOME) can be written by other users (mode {stat.S_IMODE(mode):04o}), who could replace the "
                f"state in it; run: chmod go-w {home}"
            )
    for folder in _folders(home):
        with suppress(OSError):
            if _is_open(folder) and (sharing := _shared_with(folder)):
                mode = stat.S_IMODE(folder.stat().st_mode)
                found.append(
                    f"{folder} can be entered by every user (mode {mode:04o}), and has files of {_names(sharing)}; run "
                    f"Lakebound as one user, or as one group with LAKEBOUND_STATE_ACCESS=group, then: chmod -R o-rwx {folder}"
                )
    return found


def refusal(error: PermissionError) -> str | None:
    """Return a sentence for an error of a file of state that is another user's; None for other files."""
    home = load_settings().home
    path = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else None
    if path is None or not path.is_relative_to(home):
        return None
    owner = next(
        (owner_of(folder.stat().st_uid) for folder in path.parents if os.access(folder.parent, os.X_OK)), "another user"
    )
    return (
        f"{path} is state of user {owner}, and this is user {owner_of(os.geteuid())}; run the command as {owner} "
        f"(sudo -u {owner} …), or share the state with a group (LAKEBOUND_STATE_ACCESS in docs/environment.md)"
    )


def owner_of(uid: int) -> str:
    """Return the name of a user of this machine, or the number where it has none."""
    return user_name(uid) or str(uid)


def _make_above(folder: Path) -> None:
    home = load_settings().home
    if folder == home or folder in home.parents:
        make_home(home)
    else:
        make_private_folder(folder)


def _private(path: str, flags: int) -> int:
    opened = os.open(path, flags, file_mode())
    try:
        if flags & os.O_CREAT:
            make_private(opened)
    except OSError:
        os.close(opened)
        raise
    return opened


def _with_set_group_id(folder: Path, mode: int) -> int:
    """A folder that hands its group on to what is made in it goes on to do so."""
    return mode | (folder.stat().st_mode & stat.S_ISGID)


def _folders(home: Path) -> Iterator[Path]:
    """Yield the folders of state that are there, and those of the pipelines."""
    for name in STATE_FOLDERS:
        folder = home / name
        if folder.is_dir():
            yield folder
            if name == "pipelines":
                with suppress(OSError):
                    yield from sorted(one for one in folder.iterdir() if one.is_dir() and not one.is_symlink())


def _is_open(folder: Path) -> bool:
    """Whether the folder's mode lets others in than it should."""
    return bool(stat.S_IMODE(folder.stat().st_mode) & 0o777 & ~folder_mode())


def _shared_with(folder: Path) -> set[int]:
    """Return the users, root and this one aside, to whom the folder or what lies in it belongs, two levels deep."""
    found = {folder.lstat().st_uid}
    for one in folder.iterdir():
        found.add(one.lstat().st_uid)
        if one.is_dir() and not one.is_symlink():
            found.update(inner.lstat().st_uid for inner in one.iterdir())
    return found - {0, os.geteuid()}


def _names(uids: set[int]) -> str:
    return ", ".join(f"user {owner_of(uid)}" for uid in sorted(uids))
