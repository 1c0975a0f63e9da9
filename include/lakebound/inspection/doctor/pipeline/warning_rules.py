"""Rules that warn before something fails: numbers beyond a limit. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from lakebound.control.desired import Desired
from lakebound.control.quarantine_rate import flood_of
from lakebound.control.situations import searching, stale_reference
from lakebound.inspection.doctor.diagnosis import RuleFinding
from lakebound.inspection.doctor.pipeline.facts import PipelineFacts
from lakebound.inspection.doctor.pipeline.numbers import (
    clock_difference_seconds,
    lag_records,
    lag_seconds,
    seconds_since_commit,
    seconds_to_data_loss,
)
from lakebound.inspection.doctor.wording import needs_person, warning
from lakebound.ledger.entry import redo_in
from lakebound.spec.times import in_utc, seconds_in_words

NEAR_LOSS_SECONDS = 6 * 3600.0
NEAR_LOSS_SHARE = 0.25
CHECKPOINT_BYTES = 1 << 30
CLOCK_SECONDS = 5.0
REDO_QUIET_SECONDS = 1800.0
"""Longer than a redo takes for one batch."""
_NAMED_CHANGES = 5
REFERENCE_READ_SECONDS = 300.0
"""Longer than a table takes that may be a reference."""


def data_loss_near(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """Retention will soon delete what is not landed: a person must act if nothing lands, and is warned otherwise."""
    left = seconds_to_data_loss(facts)
    kept = [kept.milliseconds / 1000 for kept in facts.kafka.retention.values() if kept.milliseconds is not None]
    if left is None or left > min([NEAR_LOSS_SECONDS, *(NEAR_LOSS_SHARE * seconds for seconds in kept)]):
        return
    sentence = f"{lag_records(facts)} offsets wait, and Kafka's retention deletes the first of them in {seconds_in_words(left)}"
    quiet = seconds_since_commit(facts)
    patience = facts.spec.thresholds.stall_seconds + 2 * _epoch_seconds(facts)
    if facts.living is not None and quiet is not None and quiet <= patience:
        yield warning("data-loss-near", f"{sentence}; the stream is landing: check that it catches up", "data-loss-near")
        return
    yield needs_person("data-loss-near", f"{sentence}, and nothing is being landed", "data-loss-near", seconds_left=left)


def rows_changed_by_others(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """Somebody else has added or removed rows of a table: nothing of Kafka is lost by going on, and a person must know."""
    for table in facts.tables:
        changes = table.foreign_changes
        if not changes:
            continue
        first = in_utc(changes[0].at_ms) if changes[0].at_ms else "an unknown time"
        named = "; ".join(map(str, changes[-_NAMED_CHANGES:]))
        number = "1 commit" if len(changes) == 1 else f"{len(changes)} commits"
        sentence = (
            f"others changed rows of table {table.table} in {number} since {first}: {named}; the stream goes on. "
            f"Undo it by a rewind, or acknowledge it: lakebound acknowledge {facts.spec.pipeline} {table.table}"
        )
        evidence = {"table": table.table, "versions": [one.version for one in changes]}
        yield warning("rows-changed-by-others", sentence, "rows-changed", **evidence)


def redo_unfinished(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """A redo, or its undoing, has ended before all was done: of the rest the rows are those of before."""
    progress = {one.table: redo_in(one.entry) for one in facts.targets}
    for table in facts.targets:
        now = progress[table.table]
        # Tables are undone one after another, and one of them may have nothing to do for a while.
        said_ms = max(one.at_ms for one in progress.values() if one.plan == now.plan)
        quiet = facts.now - said_ms / 1000
        if not now.left or quiet < REDO_QUIET_SECONDS or facts.repairing:
            continue
        what = f"the redo {now.plan}" if now.undoes is None else f"the undoing of the redo {now.undoes}"
        sentence = (
            f"{what} is not finished in table {table.table}: {now.left:,} offsets are left, and it has done nothing for "
            f"{seconds_in_words(quiet)}. Finish it by the command that began it, or undo it: lakebound redo "
            f"{facts.spec.pipeline} --undo. If neither can be done, redo all of its range"
        )
        yield warning("redo-unfinished", sentence, "bad-deploy", table=table.table, plan=now.plan, left=now.left)


def lag_too_large(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """A record waits longer than the pipeline allows, although an application lands."""
    waits = lag_seconds(facts)
    # In real time the ledger tells at an epoch's end what was sent during it.
    allowed = facts.spec.thresholds.max_lag_seconds + _epoch_seconds(facts)
    if facts.living is not None and waits is not None and waits > allowed:
        sentence = f"the oldest waiting record is {seconds_in_words(waits)} old; the limit is {seconds_in_words(allowed)}"
        yield warning("lag", sentence, "lag", lag_records=lag_records(facts))


def quarantine_flood(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """Too many records are bad: a person must act where that has stopped the pipeline, and is warned otherwise."""
    flood = flood_of(facts.spec.objectives, facts.desired or Desired(), facts.progress, facts.outcome, facts.now)
    if flood is not None:
        build = needs_person if flood.has_stopped else warning
        evidence = {"records": flood.recent.records, "quarantined": flood.recent.quarantined, "reasons": flood.recent.reasons}
        yield build("quarantine-flood", str(flood), "quarantine-flood", **evidence)


def reference_stale(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """The application keeps an older version of reference data: the newer one cannot be used, or the source cannot be read."""
    progress = facts.own_progress
    if facts.living is None or progress is None:
        return
    for name, one in progress.references.items():
        every = facts.spec.reference[name].refresh_seconds if name in facts.spec.reference else 0.0
        unseen = progress.updated_at - one.checked_at
        if one.problem is None and unseen > 3 * every + REFERENCE_READ_SECONDS:
            one = one.model_copy(update={"problem": f"its source has not answered for {seconds_in_words(unseen)}"})
        if one.problem is not None:
            evidence = {"reference": name, "version": one.version}
            yield warning("reference-stale", stale_reference(name, one), "reference-stale", **evidence)


def clocks_differ(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """Leases and retention are judged by clocks."""
    apart = clock_difference_seconds(facts)
    if apart is not None and apart > CLOCK_SECONDS:
        sentence = (
            f"two clocks are at least {seconds_in_words(apart)} apart (application, file system, Kafka's producers, this "
            f"machine): a lease may be taken too early or too late; no record is at risk, because the tables compare epochs"
        )
        yield warning("clocks-differ", sentence, "clock-difference")


def checkpoint_grows(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """Temporary checkpoints accumulate: nothing removes those of applications that died."""
    if facts.scratch.bytes > CHECKPOINT_BYTES:
        sentence = (
            f"the temporary checkpoints take {facts.scratch.bytes >> 20} MB; those of applications that have ended can be "
            f"removed"
        )
        yield warning("checkpoint-grows", sentence, "application-dead")


def facts_unread(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """A number could not be read; the verdict does not need it."""
    for text in facts.kafka.unread:
        yield warning("facts-unread", text)


def _epoch_seconds(facts: PipelineFacts) -> int:
    return facts.spec.epoch_seconds(facts.wanted_freshness)


def transform_raises(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """Nothing lands, because the application looks for the records of a batch on which the transform raises."""
    search = facts.own_progress.search if facts.own_progress is not None else None
    if facts.living is not None and search is not None and not search.is_over:
        yield warning("transform-raises", str(searching(search)), "quarantine-flood", found=search.found, tried=search.tried)


WARNING_RULES = (
    data_loss_near,
    rows_changed_by_others,
    redo_unfinished,
    lag_too_large,
    quarantine_flood,
    transform_raises,
    reference_stale,
    clocks_differ,
    checkpoint_grows,
    facts_unread,
)
