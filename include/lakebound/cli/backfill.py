"""Follows a backfill that a command has started: prints its progress, and ends it on Ctrl-C."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebound.cli import foreground
from lakebound.cli.output import say

if TYPE_CHECKING:
    from lakebound.operations.backfill.running import Follow, RunningBackfill


def in_foreground(name: str) -> Follow:
    """Return what follows a backfill in the foreground of a command.

    Args:
        name: With which the command's lines begin.
    """

    def follow(running: RunningBackfill) -> int:
        from lakebound.control.person import operating_system_user

        told, mark = 0, f"{name}: "

        def look() -> None:
            nonlocal told
            result = running.progress()
            if result is not None and result.chunks_done > told:
                told = result.chunks_done
                say(f"{mark}batch {told} of {result.chunks}; {result.read:,} records read")

        def ask_to_end() -> None:
            say(f"{mark}ending after this batch; press Ctrl-C again to kill it (landed records stay)")
            running.ask_to_end(reason="Ctrl-C", by=operating_system_user())

        say(f"{mark}{running.orders.app_id}; log: {running.submission.log}; Ctrl-C ends it after the current batch")
        return foreground.watch(running.process, running.submission, mark, look, ask_to_end)

    return follow
