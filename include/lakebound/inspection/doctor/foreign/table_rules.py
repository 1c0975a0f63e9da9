"""Rules about tables and a foreign checkpoint that contradict each other. Pure."""

from __future__ import annotations

from collections import Counter

from lakebound.inspection.doctor.diagnosis import RuleFinding
from lakebound.inspection.doctor.foreign.standing import CLOCK_SLACK_MS, Standing
from lakebound.landing.checkpoint.log_files import Mark

RUNBOOK = "foreign-checkpoint-table"


def still_moving(s: Standing) -> RuleFinding | None:
    """No two readings of the facts agreed: the query is running."""
    if not s.facts.is_moving:
        return None
    sentence = (
        "the query is running, and finishes batches faster than the doctor can read them; run the doctor again when the "
        "query is slower or stopped"
    )
    return RuleFinding(rule="still-moving", verdict="starting", sentence=sentence, evidence=s.evidence())


def table_unreadable(s: Standing) -> RuleFinding | None:
    """A table could not be read."""
    broken = [table for table in s.tables if table.problem]
    if not broken:
        return None
    what = "; ".join(f"{table.table}: {table.problem}" for table in broken)
    return _finding("table-unreadable", f"the table is needed for the diagnosis, but cannot be read: {what}", s.evidence())


def not_landed_yet(s: Standing) -> RuleFinding | None:
    """Nothing has landed, and at most the first batch is planned."""
    is_known = all(table.is_complete for table in s.tables)
    if s.highest >= 0 or s.finished >= 0 or s.planned > 0 or not is_known:
        return None
    sentence = "this query has not landed anything yet: there is nothing to compare"
    return RuleFinding(rule="not-landed-yet", verdict="starting", sentence=sentence, evidence=s.evidence())


def table_ahead(s: Standing) -> RuleFinding | None:
    """E8: the table has batches that the checkpoint has not planned."""
    if s.planned < 0 or s.highest <= s.planned:
        return None
    return _finding(
        "table-ahead",
        f"the table has epochs up to {s.highest}, but the checkpoint has planned batches only up to {s.planned}: it is an "
        f"older copy, or lost its newest files. A restart plans batches up to {s.highest} again, with more records in them, "
        "and the table skips them without an error. Do not start the query from this checkpoint; continue from the end of the "
        "newest epoch in the table",
        s.evidence(),
    )


def table_behind(s: Standing) -> RuleFinding | None:
    """E9, E12: batches have ended, but the table does not have them."""
    known = [(table.table, epoch) for table, epoch in zip(s.tables, s.landed, strict=True) if 0 <= epoch < s.floor]
    if not known:
        return None
    lowest = min(epoch for _, epoch in known)
    return _finding(
        "table-behind",
        f"the checkpoint continues after batch {s.floor}, but {known[0][0]} has epochs only up to {lowest}: the table was "
        "rolled back or created again, or commits failed without an error. A restart skips the batches between them. If you "
        f"want these rows back, continue from the end of epoch {lowest}; if you do not, the stream can continue as it is",
        s.evidence(a_plain_restart_leaves_out=ranges_between(s, lowest, s.floor)),
    )


def rows_removed(s: Standing) -> RuleFinding | None:
    """E9: rows of the query were removed after its last commit; epochs do not show that."""
    for table in s.tables:
        newest = next(iter(table.of(s.query_id)), None)
        removed = [
            removal
            for removal in table.removals
            if newest is not None and removal.order > newest.order and removal.kept_order < newest.order
        ]
        if removed:
            last = removed[0]
            return _finding(
                "rows-removed",
                f"{table.table}: {last.operation} in version {last.version} removed rows of the query after its last commit "
                f"(version {newest.version if newest else ''}); the checkpoint does not show that, and a restart continues "
                "after these rows. If you want them back, read their range again with a bounded job before the stream starts",
                s.evidence(operation=last.operation, version=last.version),
            )
    return None


def epoch_committed_twice(s: Standing) -> RuleFinding | None:
    """E10: two drivers on one checkpoint. Iceberg accepts both commits."""
    for table in s.tables:
        counts = Counter(commit.epoch for commit in table.of(s.query_id))
        twice = sorted(epoch for epoch, count in counts.items() if count > 1)
        if twice:
            return _finding(
                "epoch-committed-twice",
                f"{table.table} has epoch {twice[0]} of this query {counts[twice[0]]} times: two drivers use one checkpoint, "
                "and their records are duplicated; stop all drivers except one, then remove the rows of the second commit",
                s.evidence(epochs=twice, versions=[commit.version for commit in table.of(s.query_id) if commit.epoch in twice]),
            )
    return None


def offsets_contradict_table(s: Standing) -> RuleFinding | None:
    """The offsets from which a restart continues do not fit the commit of that batch: other rows, or another time."""
    for batch in sorted({epoch for epoch in s.landed if epoch >= 0}):
        problem = _contradiction(s, batch)
        if problem:
            return _finding(
                "offsets-contradict-table",
                f"the table's epoch {batch} was not written from the present offsets/{batch}: {problem}; a restart would "
                "read the difference again, or skip it",
                s.evidence(
                    batch=batch, spans=s.ranges.records(batch), rows=[commit.rows for commit in s.ranges.commits_of(batch)]
                ),
            )
    return None


def ranges_between(s: Standing, first: int, last: int) -> dict[str, tuple[int, int]] | None:
    """Return per partition the offsets from the end of one batch to the end of another; None where the files do not say."""
    before, after = s.checkpoint.sound_offsets(first), s.checkpoint.sound_offsets(last)
    if before is None or after is None:
        return None
    return {_name(mark): (before.marks.get(mark, 0), offset) for mark, offset in sorted(after.marks.items())}


def _contradiction(s: Standing, batch: int) -> str | None:
    if s.ranges.rows_contradict(batch):
        return "all other batches have as many rows as offsets, but this one does not"
    planned = s.checkpoint.sound_offsets(batch)
    if planned is None or planned.planned_at_ms is None:
        return None
    if any(0 < commit.committed_at_ms < planned.planned_at_ms - CLOCK_SLACK_MS for commit in s.ranges.commits_of(batch)):
        return "it was planned after that batch was committed"
    if any(commit.committed_at_ms > planned.planned_at_ms + CLOCK_SLACK_MS for commit in s.ranges.commits_of(batch - 1)):
        return "it was planned before the preceding batch was committed"
    return None


def _name(mark: Mark) -> str:
    return f"{mark[1]}/{mark[2]}"


def _finding(rule: str, sentence: str, evidence: dict[str, object]) -> RuleFinding:
    return RuleFinding(rule=rule, verdict="needs_person", sentence=sentence, runbook=RUNBOOK, evidence=evidence)
