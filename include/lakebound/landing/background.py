"""Runs a command behind everything else on the machine: ``python background.py COMMAND...`` becomes the command.

``nice`` alone ranks only processes of one session: Linux first divides the cores among sessions, in equal shares ("The
autogroup feature" in https://man7.org/linux/man-pages/man7/sched.7.html), and a stream has a session of its own. So the command
gets a session, too, with the smallest share. Where the system has it, its scheduling policy is the one for work that may wait:
a core that does nothing else then counts as idle for whoever wakes up ("SCHED_IDLE", same page). Its process id stays. Only the
standard library: nothing else is imported yet.
"""

from __future__ import annotations

import contextlib
import os
import sys

LOWEST = 19


def go_behind() -> None:
    """Make this process the last in line for the cores."""
    with contextlib.suppress(PermissionError):  # it leads a group already
        os.setsid()
    os.nice(LOWEST)
    may_wait(0)
    if os.getsid(0) == os.getpid():
        # Not there: another system, or autogroups are switched off, and nice counts among all processes.
        with contextlib.suppress(OSError), open("/proc/self/autogroup", "w") as share:
            share.write(str(LOWEST))


def may_wait(thread: int) -> None:
    """Give a thread (0: the calling one) the policy of work that may wait, if the system has it; later threads inherit it."""
    if hasattr(os, "SCHED_IDLE"):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))


def main() -> None:
    """Go behind, and become the command."""
    go_behind()
    try:
        os.execvp(sys.argv[1], sys.argv[1:])
    except OSError as exc:
        sys.exit(f"{sys.argv[1]}: {exc.strerror}")


if __name__ == "__main__":
    main()
