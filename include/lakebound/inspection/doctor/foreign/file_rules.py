"""Rules about the files of a foreign checkpoint. Pure: each looks at one fault and says what mends it."""

from __future__ import annotations

from lakebound.inspection.doctor.diagnosis import DoctorVerdict, RuleFinding
from lakebound.inspection.doctor.foreign.standing import Standing, follows
from lakebound.landing.checkpoint.log_files import MISMATCH

RUNBOOK = "foreign-checkpoint"


def checkpoint_missing(s: Standing) -> RuleFinding | None:
    """E1: nothing is planned or finished, and the table was written by queries, but not by this one."""
    if s.planned >= 0 or s.finished >= 0 or s.highest >= 0 or not any(table.epochs for table in s.tables):
        return None
    return _finding(
        "checkpoint-missing",
        "the checkpoint holds no batch, but streaming queries have written the table: started now, the query reads from "
        "its startingOffsets, which leaves records out (latest) or lands them again (earliest); find the checkpoint that "
        "wrote the table, or work out from the table's rows where it ended and start a new checkpoint with exactly these "
        "startingOffsets",
        s.evidence(queries=sorted({query for table in s.tables for query in table.epochs})),
    )


def reset_by_hand(s: Standing) -> RuleFinding | None:
    """E7: offsets and commits were deleted, the id was kept."""
    if s.planned >= 0 or s.finished >= 0 or s.highest < 0:
        return None
    return _finding(
        "reset-by-hand",
        f"offsets and commits are gone, but the query kept its id, of which the table holds epochs up to {s.highest}: a "
        f"restart begins at batch 0, and the table silently skips every batch up to {s.highest}: their records are lost "
        "without an error; do not start it: use a new checkpoint folder, with startingOffsets worked out from the table's "
        "rows",
        s.evidence(query_id=s.query_id),
    )


def metadata_missing(s: Standing) -> RuleFinding | None:
    """E6: the id is gone, the log is not."""
    found = s.checkpoint.metadata
    is_new = found is None and s.planned < 0 and s.finished < 0
    if is_new or (found is not None and found.flaw is None):
        return None
    what = "is missing" if found is None else f"is damaged ({found.flaw})"
    return _finding(
        "metadata-missing",
        f"the file metadata {what}: Spark 4.1 and older give the query a new id (when it is missing), under which the table "
        f"does not recognise a batch that it already holds; Spark 4.2 refuses to start. {_id_sentence(s)}",
        s.evidence(candidates=list(s.candidates)),
    )


def query_unknown_to_table(s: Standing) -> RuleFinding | None:
    """The id is there, and a table has never heard of it."""
    unknown = [table for table in s.tables if s.own_id is not None and s.own_id not in table.epochs]
    is_first_batch = s.finished < 0 and s.planned <= 0 and not s.candidates and all(table.is_complete for table in unknown)
    if not unknown or is_first_batch or (s.planned < 0 and s.finished < 0):
        return None
    why = "the file metadata may be another query's"
    if any(not table.is_complete for table in unknown):
        why += ", or maintenance has removed the commits that named it, so that nobody can tell which batches it holds"
    return _finding(
        "query-unknown-to-table",
        f"the checkpoint belongs to query {s.own_id}, of which {', '.join(table.table for table in unknown)} holds no "
        f"commit: {why}, or the table is another one, or a foreachBatch writes it. {_id_sentence(s)}",
        s.evidence(candidates=list(s.candidates), missing_tables=[table.table for table in unknown if not table.exists]),
    )


def stray_batch_file(s: Standing) -> RuleFinding | None:
    """A file whose name is a number, and that is no batch."""
    if not s.strays:
        return None
    return _finding(
        "stray-batch-file",
        f"Spark takes {', '.join(s.strays)} for batches by their names and goes on from them, or fails; nothing else knows "
        "of such batches: move these files out of the checkpoint",
        s.evidence(strays=list(s.strays)),
    )


def offsets_missing(s: Standing) -> RuleFinding | None:
    """E4: a batch has ended whose plan is not there."""
    if s.finished <= s.planned:
        return None
    return _finding(
        "offsets-missing",
        f"commits/{s.finished} is there, offsets/{s.finished} is not: each restart runs batch {s.planned} again and dies "
        "with CONCURRENT_STREAM_LOG_UPDATE (or, without any offsets, STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY) although "
        "no second query runs; do not retry, and do not delete commits: go on from the end of the newest epoch that the "
        "table holds",
        s.evidence(),
    )


def newest_offsets_damaged(s: Standing) -> RuleFinding | None:
    """E3: the plan of the newest batch cannot be read."""
    found = s.checkpoint.offsets.get(s.planned)
    if found is None or found.flaw is None:
        return None
    if s.highest >= s.planned:
        sentence = (
            f"the table already holds batch {s.planned}: deleting the file would plan a wider batch {s.planned}, which the "
            "table skips, and its records would be lost; the file must hold the offsets at which that batch ended"
        )
    else:
        sentence = f"the table does not hold batch {s.planned}: it may be planned anew, after offsets/{s.planned - 1}"
    return _finding(
        "newest-offsets-damaged",
        f"offsets/{s.planned} {_damaged(found.flaw)}; {sentence}",
        s.evidence(flaw=found.flaw),
    )


def previous_offsets_missing(s: Standing) -> RuleFinding | None:
    """E2: Spark also reads the plan of the batch before the newest."""
    before = s.planned - 1
    if s.planned < 1 or s.checkpoint.sound_offsets(before) is not None:
        return None
    found = s.checkpoint.offsets.get(before)
    missing = f'is missing, so the query does not start ("batch {before} doesn\'t exist")'
    what = missing if found is None else _damaged(found.flaw)
    need = (
        f"nothing reads its offsets any more, since the table holds batch {s.planned}"
        if s.lowest >= s.planned
        else f"batch {s.planned} begins where it ends, and the table does not hold that batch yet"
    )
    return _finding(
        "previous-offsets-missing",
        f"offsets/{before} {what}; {need}",
        s.evidence(flaw=found.flaw if found else "missing"),
    )


def newest_commit_damaged(s: Standing) -> RuleFinding | None:
    """E5: the mark that the newest batch ended cannot be read."""
    found = s.checkpoint.commits.get(s.finished)
    if found is None or found.flaw is None:
        return None
    return _finding(
        "newest-commit-damaged",
        f"commits/{s.finished} {_damaged(found.flaw)}; without the file Spark runs batch {s.planned} again with the same "
        "range, and a native sink that holds it skips it",
        s.evidence(flaw=found.flaw),
    )


def commits_missing(s: Standing) -> RuleFinding | None:
    """Marks that batches ended are gone; a restart only needs to run the newest batch again."""
    is_gap = 0 <= s.planned and s.finished < s.planned - 1
    if not is_gap or s.lowest < s.floor or s.highest > s.planned:
        return None
    return RuleFinding(
        rule="commits-missing",
        verdict="repairable",
        sentence=f"commits end at {s.finished}, offsets at {s.planned}; the table holds all batches up to {s.lowest}: a plain "
        f"restart runs batch {s.planned} again, with the same range, and lands what the table does not hold",
        runbook=RUNBOOK,
        evidence=s.evidence(),
        replays_records=max(0, s.ranges.records(s.planned) or 0),
    )


def initial_offsets_missing(s: Standing) -> RuleFinding | None:
    """The first batch runs again, and where it begins is not known."""
    first = s.checkpoint.sound_offsets(0)
    is_damaged = s.planned < 0 and s.highest < 0 and any(file.flaw for file in s.checkpoint.initial.values())
    runs_again = s.planned == 0 and s.finished < 0 and first is not None and bool(first.marks)
    if not (is_damaged or (runs_again and s.checkpoint.sound_offsets(-1) is None)):
        return None
    cost = (
        "the table holds that batch, so that nothing is lost yet"
        if s.lowest >= 0
        else "nothing has landed yet: start a new checkpoint with the startingOffsets that were meant"
    )
    return _finding(
        "initial-offsets-missing",
        "sources/0/0 is damaged (the query does not start) or missing (Spark asks startingOffsets again, and with latest "
        f"leaves out what has come since), and the first batch, which begins there, has not finished; {cost}",
        s.evidence(flaws=[file.flaw for file in s.checkpoint.initial.values() if file.flaw]),
    )


def offsets_out_of_order(s: Standing) -> RuleFinding | None:
    """The plan that a restart goes on from cannot have followed the one before it."""
    pairs = sorted({(batch + step - 1, batch + step) for batch in s.landed for step in (0, 1) if batch + step <= s.planned})
    for before, after in pairs:
        earlier, later = s.checkpoint.sound_offsets(before), s.checkpoint.sound_offsets(after)
        problem = follows(earlier, later) if after >= 0 and earlier is not None and later is not None else None
        if problem:
            return _finding(
                "offsets-out-of-order",
                f"offsets/{after} cannot follow {f'offsets/{before}' if before >= 0 else 'sources/0/0'}: {problem}; one of "
                "the two is a copy of another file, or was changed: a restart would read again, or leave out, what lies "
                "between",
                s.evidence(batch=after),
            )
    return None


def offsets_unverified(s: Standing) -> RuleFinding | None:
    """Nothing says that the numbers a restart goes on from are what Spark wrote."""
    found = [batch for batch in sorted(set(s.landed)) if batch >= 0 and s.checkpoint.sound_offsets(batch)]
    unverified = [batch for batch in found if not s.ranges.vouched(batch)]
    if not unverified:
        return None
    verdict, sentence = _trust(s, unverified)
    return RuleFinding(
        rule="offsets-unverified",
        verdict=verdict,
        sentence=f"{', '.join(f'offsets/{batch}' for batch in unverified)}: {sentence}",
        runbook=RUNBOOK if verdict == "needs_person" else None,
        evidence=s.evidence(batches=unverified),
    )


def _trust(s: Standing, unverified: list[int]) -> tuple[DoctorVerdict, str]:
    if s.checkpoint.has_checksums and any(s.checkpoint.offsets[batch].checksum == "missing" for batch in unverified):
        return (
            "needs_person",
            "no .crc, but other files have: changed or copied by hand, and the table's rows do not confirm it",
        )
    if any(s.ranges.are_few(batch) for batch in unverified):
        return "starting", "the table got more or fewer rows than it spans, and too few batches tell yet if that is usual"
    return "healthy", "no .crc, as in an object store, and no row per record in this stream: its numbers are taken on trust"


def _damaged(flaw: str | None) -> str:
    if flaw == MISMATCH:
        return f"was changed since Spark wrote it ({flaw}): Spark does not notice, and goes on with what it reads"
    return f"cannot be read ({flaw}), so the query does not start"


def _id_sentence(s: Standing) -> str:
    if len(s.candidates) == 1:
        return (
            f"The table's commits fit query {s.candidates[0]}: that is the id to restore, unless that query is another stream"
        )
    if s.candidates:
        return f"The table's commits fit {len(s.candidates)} queries ({', '.join(s.candidates)}): somebody must say which it is"
    return "No query in the table's history fits this checkpoint"


def _finding(rule: str, sentence: str, evidence: dict[str, object]) -> RuleFinding:
    return RuleFinding(rule=rule, verdict="needs_person", sentence=sentence, runbook=RUNBOOK, evidence=evidence)
