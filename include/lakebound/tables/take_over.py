"""The stream commits what maintenance prepared, between two commits of its own, through the function that makes those."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import structlog

from lakebound.control.handover import Answer
from lakebound.errors import CommitFailedError, CommitUnknownError, DiskFullError
from lakebound.ledger.entry import Entry, carried
from lakebound.tables.commit import commit_entry, read_on
from lakebound.tables.prepared import StalePreparedError, commit_prepared, parse
from lakebound.tables.table import LedgerView
from lakebound.tables.target import LandingTarget

_log = structlog.get_logger(__name__)


class Offered(Protocol):
    """A ``lakebound.control.handover.Offer``."""

    @property
    def body(self) -> str:
        """What was prepared, as text."""

    def answer(self, answer: Answer) -> None:
        """Say what became of it."""


@dataclass(frozen=True)
class Committer:
    """Who commits it.

    Attributes:
        epoch: Of its lease.
        check_lease: Raises LeaseLostError when the lease is gone.
    """

    epoch: int
    check_lease: Callable[[], None]


def take_over(offers: Iterable[Offered], table: LandingTarget, view: LedgerView, committer: Committer) -> LedgerView:
    """Commit what was prepared for a table, and return the ledger as it then stands.

    What cannot be committed is refused, and harms nothing: maintenance prepares it anew.

    Args:
        offers: What maintenance has prepared.
        table: The table; its handle is the one from which ``view`` was read or committed.
        view: The ledger as this application last saw it.
        committer: This application.

    Raises:
        LeaseLostError: A later application writes for this pipeline.
        LedgerWentBackError: The table was rolled back meanwhile.
        CommitUnknownError: A commit failed, and the ledger cannot be read.
    """
    for offer in offers:
        answer = Answer("unknown")
        began = time.perf_counter()
        try:
            answer, view = _committed(offer.body, table, view, committer)
        finally:
            offer.answer(answer)
        seconds = round(time.perf_counter() - began, 4)
        _log.info("prepared_commit", table=table.spec.id, outcome=answer.outcome, seconds=seconds, reason=answer.reason)
    return view


def _committed(body: str, table: LandingTarget, view: LedgerView, committer: Committer) -> tuple[Answer, LedgerView]:
    if view.entry is None:
        return Answer("refused", reason="no entry counts"), view
    committer.check_lease()
    try:
        prepared = parse(body)
    except ValueError as exc:
        return Answer("refused", reason=f"{type(exc).__name__}: it was prepared by another version of Lakebound"), view
    draft = carried(view.entry)

    def commit(entry: Entry) -> str:
        return commit_prepared(table, prepared, entry)

    try:
        done = commit_entry(
            table,
            view,
            commit,
            draft,
            own_epoch=committer.epoch,
            check_lease=committer.check_lease,
            attempts=1,  # it was prepared for what the table held at the first
        )
    except StalePreparedError as exc:
        return Answer("refused", reason=str(exc)), view
    except (CommitFailedError, CommitUnknownError, DiskFullError) as exc:
        after = read_on(table, view, draft, committer.epoch)
        return Answer("refused", reason=str(exc)), after
    return Answer("committed", done.version), done.read_again or LedgerView(view.entry, done.version, view.foreign_changes)
