"""``python -m lakebound_airflow.watch``: the process that ``lakebound watch`` becomes."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from lakebound.alerts.store import AlertStore
from lakebound.control.folder import locked_if_free
from lakebound.control.lock_holder import holder_of
from lakebound.control.private_files import owner_of
from lakebound.errors import LakeboundError
from lakebound.settings import load_settings, state_is_shared

EXIT_PROBLEM = 1


class AlreadyWatchedError(LakeboundError):
    """Another process watches with the same state folder."""

    def __init__(self, holder: str) -> None:
        super().__init__(f"{holder} already runs the watch; end that process first, or leave the watch to it")


class NotOwnerError(LakeboundError):
    """The state folder is another user's."""

    def __init__(self, home: Path, owner: str, user: str) -> None:
        super().__init__(
            f"{home} is state of user {owner}, and this is user {user}; user {owner} could not read the files that this "
            f"command writes. Run it as {owner}: sudo -u {owner} lakebound watch"
        )


def main(arguments: list[str]) -> int:
    """Watch; return the exit code: of one round whether it was good, else 0 at the end that was asked for."""
    parser = argparse.ArgumentParser(prog="lakebound watch")
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--interval", type=float, required=True)
    options = parser.parse_args(arguments)
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    settings = load_settings()
    try:
        check_owner(settings.home)
        with alone(AlertStore(settings.home).folder / "watch"):
            # Airflow's packages take seconds to import.
            from lakebound_airflow.watch.service import Watch

            watch = Watch(settings, stopping)
            if options.once:
                return 0 if watch.once() else EXIT_PROBLEM
            print(f"watch: a round every {options.interval:g} s; state: {settings.home}", file=sys.stderr, flush=True)
            watch.run(options.interval)
            return 0
    except LakeboundError as exc:
        print(f"lakebound: {exc}", file=sys.stderr)
        return EXIT_PROBLEM


def check_owner(home: Path) -> None:
    """Check that the state is this user's, or shared: what another user writes, root included, stops the owner's rounds.

    Args:
        home: LAKEBOUND_HOME.

    Raises:
        NotOwnerError: It is another user's.
    """
    if home.exists() and not state_is_shared() and (owner := home.stat().st_uid) != os.geteuid():
        raise NotOwnerError(home, owner_of(owner), owner_of(os.geteuid()))


@contextlib.contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Keep every other watch out; where no lock can be taken, as on a full disk, watching is more important."""
    with contextlib.ExitStack() as held:
        try:
            is_mine = held.enter_context(locked_if_free(lock))
        except OSError as exc:
            print(f"watch: no lock can be taken ({exc}), so a second watch would not be noticed", file=sys.stderr)
            is_mine = True
        if not is_mine:
            raise AlreadyWatchedError(_holder(lock))
        yield


def _holder(lock: Path) -> str:
    opened = os.open(f"{lock}.lock", os.O_RDONLY)
    try:
        return holder_of(opened)
    finally:
        os.close(opened)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
