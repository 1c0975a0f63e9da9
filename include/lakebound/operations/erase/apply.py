"""Applies an approved erasure beside the running stream, one commit per table.

It needs no lease: each commit is a compare-and-swap that carries on the newest entry, as a replay's is. What an interrupted run
has done stays, and the same command does the rest. Repairs, rewinds and maintenance wait until it has ended.
"""

from __future__ import annotations

import time
from functools import partial

from lakebound.control.erased_record import read_record, write_record
from lakebound.control.folder import ControlFolder, locked
from lakebound.control.incidents import Decision, Incident, record_incident
from lakebound.control.turns import AskForTurn
from lakebound.ledger.entry import Entry, check_owner, new_commit_id
from lakebound.ledger.marks import NextOffsets
from lakebound.operations.erase.copying import Copies, find_hits
from lakebound.operations.erase.plan import ErasePlan, NothingToEraseError
from lakebound.operations.erase.prepare import erasable, prepare
from lakebound.operations.recovery.plan import PlanChangedError
from lakebound.redaction import TOLD_TO_ITS_CALLER, redacted
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.commit import Waits, commit_entry
from lakebound.tables.erased import are_among, read_erased, write_erased
from lakebound.tables.guest import retry_as_guest
from lakebound.tables.places import Places
from lakebound.tables.prepared import StalePreparedError
from lakebound.tables.stale_ledger import read_not_behind
from lakebound.tables.table import Table, open_table

_ANOTHER_REPAIR_SECONDS = 3600.0
"""As long as a repair, or a step of maintenance, may take."""
_FEWEST_ATTEMPTS = 20
"""A stream may commit fifteen times a second."""


def apply_erase(
    spec: PipelineSpec,
    places: Places,
    where: str,
    approved: str,
    *,
    below: NextOffsets | None = None,
    by: str,
    asked_by: str | None = None,
    reason: str = "",
) -> Incident:
    """Erase the rows of the approved plan from every table of the pipeline, and return the record of it.

    Args:
        spec: The pipeline.
        places: Where its tables and its state are.
        where: The condition of the plan.
        approved: Hash of the plan.
        below: The plan's bound.
        by: Who approved it.
        asked_by: Who asked for it; None where that is not known.
        reason: Why, for the record: a ticket's number, but no personal data.

    Raises:
        PlanChangedError: Other rows are meant now; nothing was erased.
        NothingToEraseError: No row is meant: all tables were done before.
        LakeboundError: What reading and committing raises; what was committed stays.
    """
    control = ControlFolder(places.home, spec.pipeline, places.state)
    with locked(control.repair, _ANOTHER_REPAIR_SECONDS):
        plan = prepare(spec, places, where, below)
        if plan.hash != approved:
            raise PlanChangedError(spec.pipeline, approved, plan.hash)
        done: dict[str, str] = {}
        record = partial(_record, control, plan, done, by=by, asked_by=asked_by, reason=reason)
        try:
            # Before any table is changed: from now on a table that is made anew leaves these rows out.
            write_record(control, read_record(control).plus(plan.erased))
            for share in plan.tables:
                one = next(table for table in spec.tables if table.id == share.table)
                with AskForTurn(control, one.id) as turn:
                    work = partial(_erase, spec, open_table(one, places), places, plan, turn)
                    attempts = max(_FEWEST_ATTEMPTS, spec.limits.commit_attempts)
                    done[one.id] = retry_as_guest(work, what=f"erasure from {one.id}", attempts=attempts)
        except BaseException as exc:
            record(f"interrupted ({redacted(exc, TOLD_TO_ITS_CALLER)}): run the same command again")
            raise
        return record("done")


def _erase(spec: PipelineSpec, table: Table, places: Places, plan: ErasePlan, turn: AskForTurn) -> str:
    """Commit to one table, from its newest version, and return the version."""
    view = read_not_behind(table, places)
    if view.entry is None:
        raise NothingToEraseError(spec.pipeline, f"{table.spec.id} has no ledger any more")
    check_owner(view.entry, spec.pipeline, table.spec.id)
    files = erasable(table)
    files.check_may_erase()
    hits = find_hits(files, plan.erased)
    known = read_erased(table, view.entry)
    every = known.plus(plan.erased)
    if every == known and not hits:
        return view.version
    draft = Entry(
        kind="erase",
        pipeline=spec.pipeline,
        epoch=view.epoch,
        commit=new_commit_id(),
        erased=write_erased(table, every),
        erases=sum(hit.going.num_rows for hit in hits),
        decision=plan.hash,
    )
    copies = Copies(files)

    def commit(entry: Entry) -> str:
        if not hits:
            return table.commit([], entry)
        return files.take_out([hit.file for hit in hits], copies.files, entry)

    def wait(seconds: float) -> None:
        turn()
        time.sleep(seconds)

    try:
        copies.write(hits, partial(are_among, rows=plan.erased))
        return commit_entry(
            table,
            view,
            commit,
            draft,
            own_epoch=view.epoch,
            check_lease=lambda: None,
            attempts=max(_FEWEST_ATTEMPTS, spec.limits.commit_attempts),
            waits=Waits(between=wait),
        ).version
    except StalePreparedError:
        copies.discard()  # none of the attempts was committed
        raise


def _record(
    control: ControlFolder,
    plan: ErasePlan,
    done: dict[str, str],
    outcome: str,
    *,
    by: str,
    asked_by: str | None,
    reason: str,
) -> Incident:
    return record_incident(
        control,
        "repair",
        f"erase: {plan.erased.rows:,} rows by decision" + (f": {reason}" if reason else ""),
        facts={"versions": dict(done)},
        outcome=outcome,
        decision=Decision(asked_by, approved_by=by, plan=plan.facts()),
    )
