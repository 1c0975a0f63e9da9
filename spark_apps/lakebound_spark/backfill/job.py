"""The frame of every backfill: pieces, one after another, each committed as a guest of the stream, and the record of it all.

What keeps a backfill and the stream from landing a row twice is each table's compare-and-swap (``lakebound.tables.guest``).
Which offsets are landed, where their records are, and what a commit says of them is the policy's.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from functools import partial
from typing import Generic, Protocol, TypeVar

from pyspark.sql import SparkSession

from lakebound.control.desired import Desired, read_desired
from lakebound.control.replay_result import PieceCounts, ReplayResult, ReplayState, TableLanded, write_result
from lakebound.errors import HeldError, LakeboundError
from lakebound.landing.kafka_errors import refusal_in
from lakebound.landing.run_spec import RunSpec
from lakebound.operations.backfill.tables import NothingLandedYetError
from lakebound.redaction import redacted
from lakebound.tables.guest import retry_as_guest
from lakebound_spark.session import make_session

log = logging.getLogger(__name__)

Piece = TypeVar("Piece")
Landable = TypeVar("Landable", contravariant=True)
CheckWanted = Callable[[], None]
"""Raises where nothing more is to be landed: the backfill was asked to end, or the pipeline is held."""


class StoppedError(LakeboundError):
    """Somebody asked the backfill to end."""

    def __init__(self, pipeline: str) -> None:
        super().__init__(f"pipeline {pipeline!r}: stopped on request between two batches; run it again to land the rest")


class Tables(Protocol[Landable]):
    """The tables of a pipeline while a policy lands in them."""

    def land(self, piece: Landable, number: int) -> PieceCounts:
        """Land what the policy says of a piece, by what the tables hold now.

        What an attempt before has committed stays, and is not landed again.

        Args:
            piece: Offsets.
            number: Of the piece.
        """

    def look_again(self) -> None:
        """Prepare another attempt, after a table has moved on under one."""

    def landed(self) -> Mapping[str, TableLanded]:
        """Return what was committed until now, by the table's id."""

    def close(self) -> None:
        """Free what is kept."""


class Policy(Protocol[Piece]):
    """What decides which offsets a backfill lands, and with which entry."""

    @property
    def name(self) -> str:
        """What a person calls such a backfill."""

    def goes_on_held(self, hold: Desired) -> bool:
        """Return whether it goes on while the pipeline is held; a trial does, which lands nothing.

        Args:
            hold: The desired state, which is ``held``.
        """

    def begun(self) -> ReplayResult:
        """Return the record as it is before anything has landed."""

    def alone(self, check_wanted: CheckWanted) -> AbstractContextManager[None]:
        """Return what keeps out, from before the pieces are known until all is done, who must not commit meanwhile.

        Args:
            check_wanted: Called while it waits for others.
        """

    def pieces(self) -> Sequence[Piece]:
        """Return what is to be landed, in pieces that are each whole; without Spark."""

    def open(self, session: SparkSession, check_wanted: CheckWanted) -> Tables[Piece]:
        """Return the tables, ready for the first piece.

        Args:
            session: Spark's.
            check_wanted: Called before what takes long.
        """

    def finish(self) -> str:
        """Check that all is done, after the last piece, and return what else is to be said; mostly nothing."""


class Backfill(Generic[Piece]):
    """Lands by one policy, piece after piece."""

    def __init__(self, orders: RunSpec, policy: Policy[Piece]) -> None:
        self._orders = orders
        self._policy = policy
        self._result = policy.begun()
        self._tables: Tables[Piece] | None = None
        self._said = ""

    def run(self) -> ReplayResult:
        """Run to the end and return how it ended; that is also written to the pipeline's folder, after each piece."""
        spec, error = self._orders.spec, None
        try:
            self._land()
        except Exception as exc:
            log.exception("%s of %s ended", self._policy.name, spec.pipeline)
            error = refusal_in(spec.connection, exc) or exc
        self._change(
            self._result,
            state=state_of(error),
            reason=reason_of(error, self._result, self._said),
            error_class=type(error).__name__ if error else None,
            ended_at=time.time(),
        )
        return self._result

    def _land(self) -> None:
        self._change(self._result)
        with self._policy.alone(self._check_wanted):
            pieces = self._policy.pieces()
            self._change(self._result, chunks=len(pieces))
            if pieces:
                self._land_pieces(pieces)
            self._said = self._policy.finish()

    def _land_pieces(self, pieces: Sequence[Piece]) -> None:
        session = make_session(f"lakebound-{self._policy.name}-{self._orders.spec.pipeline}")
        try:
            with closing(self._policy.open(session, self._check_wanted)) as tables:
                self._tables = tables
                for number, piece in enumerate(pieces):
                    self._land_piece(tables, piece, number)
                    log.info("batch %d of %d: %s", number + 1, len(pieces), self._result)
        finally:
            session.stop()

    def _land_piece(self, tables: Tables[Piece], piece: Piece, number: int) -> None:
        self._check_wanted()
        attempts = self._orders.spec.limits.commit_attempts
        land = partial(tables.land, piece, number)
        look_again = partial(self._look_again, tables)
        counts = retry_as_guest(land, what=f"batch {number}", attempts=attempts, look_again=look_again)
        self._change(self._result.plus(counts), chunks_done=number + 1)

    def _look_again(self, tables: Tables[Piece]) -> None:
        self._check_wanted()
        tables.look_again()

    def _check_wanted(self) -> None:
        control, pipeline = self._orders.control, self._orders.spec.pipeline
        if control.stop_marker(self._orders.app_id).exists():
            raise StoppedError(pipeline)
        desired = read_desired(control)
        if desired.state == "held" and not self._policy.goes_on_held(desired):
            raise HeldError(pipeline, desired.reason)

    def _change(self, result: ReplayResult, **changes: object) -> None:
        landed = {} if self._tables is None else dict(self._tables.landed())
        self._result = result.model_copy(update={"tables": landed, **changes})
        write_result(self._orders.control, self._result)


def state_of(error: Exception | None) -> ReplayState:
    """Return how a backfill ended."""
    if error is None:
        return "completed"
    if isinstance(error, StoppedError):
        return "stopped"
    refused = isinstance(error, LakeboundError) and error.is_refusal
    return "refused" if refused or isinstance(error, (HeldError, NothingLandedYetError)) else "failed"


def reason_of(error: Exception | None, result: ReplayResult, said: str) -> str:
    """Return why it ended, in words."""
    if error is not None:
        return redacted(error)
    return "; ".join(filter(None, (f"all {result.chunks} batches landed", said)))
