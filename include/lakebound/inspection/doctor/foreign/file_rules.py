"""Rules about the files of a foreign checkpoint. Pure: each looks for one fault and says what repairs it."""

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
        "the checkpoint has no batch, but streaming queries have written the table. If the query is started now, it reads "
        "from its startingOffsets: it skips records (latest) or lands them again (earliest). Find the checkpoint of the "
        "query that wrote the table; or calculate from the table's rows where that query ended, and start a new checkpoint "
        "with exactly these startingOffsets",
        s.evidence(queries=sorted({query for table in s.tables for query in table.epochs})),
    )


def reset_by_hand(s: Standing) -> RuleFinding | None:
    """E7: offsets and commits were deleted, the id was kept."""
    if s.planned >= 0 or s.finished >= 0 or s.highest < 0:
        return None
    return _finding(
        "reset-by-hand",
        f"offsets and commits were deleted, but the query still has its id, and the table has epochs up to {s.highest} of "
        f"that id. A restart begins at batch 0, the table silently skips every batch up to {s.highest}, and their records are "
        "lost without an error. Do not start the query: use a new checkpoint folder, with startingOffsets calculated from "
        "the table's rows",
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
        f"the file metadata {what}. Spark 4.1 and older give the query a new id if the file is missing; the table then does "
        f"not recognise a batch that it already has. Spark 4.2 refuses to start. {_id_sentence(s)}",
        s.evidence(candidates=list(s.candidates)),
    )


def query_unknown_to_table(s: Standing) -> RuleFinding | None:
    """The id is there, but a table has no commit of it."""
    unknown = [table for table in s.tables if s.own_id is not None and s.own_id not in table.epochs]
    is_first_batch = s.finished < 0 and s.planned <= 0 and not s.candidates and all(table.is_complete for table in unknown)
    if not unknown or is_first_batch or (s.planned < 0 and s.finished < 0):
        return None
    why = "the file metadata may be another query's"
    if any(not table.is_complete for table in unknown):
        why += ", or maintenance removed the commits that named this query, and then nobody knows which batches the table has"
    return _finding(
        "query-unknown-to-table",
        f"the checkpoint belongs to query {s.own_id}, but {', '.join(table.table for table in unknown)} has no commit of this "
        f"query: {why}, or the query writes another table, or a foreachBatch writes this one. {_id_sentence(s)}",
        s.evidence(candidates=list(s.candidates), missing_tables=[table.table for table in unknown if not table.exists]),
    )


def stray_batch_file(s: Standing) -> RuleFinding | None:
    """A file whose name is a number, but which is not a batch."""
    if not s.strays:
        return None
    return _finding(
        "stray-batch-file",
        f"because of their names, Spark reads {', '.join(s.strays)} as batches and continues from them, or fails. No other "
        "file and no table has such batches: move these files out of the checkpoint",
        s.evidence(strays=list(s.strays)),
    )


def offsets_missing(s: Standing) -> RuleFinding | None:
    """E4: a batch has ended, but its offsets file is missing."""
    if s.finished <= s.planned:
        return None
    return _finding(
        "offsets-missing",
        f"commits/{s.finished} exists, but offsets/{s.finished} does not: each restart runs batch {s.planned} again and fails "
        "with CONCURRENT_STREAM_LOG_UPDATE (or, without any offsets, STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY), although "
        "no second query runs. Do not retry, and do not delete commits: continue from the end of the newest epoch in the table",
        s.evidence(),
    )


def newest_offsets_damaged(s: Standing) -> RuleFinding | None:
    """E3: the offsets file of the newest batch cannot be read."""
    found = s.checkpoint.offsets.get(s.planned)
    if found is None or found.flaw is None:
        return None
    if s.highest >= s.planned:
        sentence = (
            f"the table already has batch {s.planned}. If you delete the file, Spark plans a batch {s.planned} with more "
            "records, the table skips it, and these records are lost. The file must contain the end offsets of that batch"
        )
    else:
        sentence = f"the table does not have batch {s.planned}: it can be planned again, after offsets/{s.planned - 1}"
    return _finding(
        "newest-offsets-damaged",
        f"offsets/{s.planned} {_damaged(found.flaw)}; {sentence}",
        s.evidence(flaw=found.flaw),
    )


def previous_offsets_missing(s: Standing) -> RuleFinding | None:
    """E2: Spark also reads the offsets file of the batch before the newest."""
    before = s.planned - 1
    if s.planned < 1 or s.checkpoint.sound_offsets(before) is not None:
        return None
    found = s.checkpoint.offsets.get(before)
    missing = f'is missing, so the query does not start ("batch {before} doesn\'t exist")'
    what = missing if found is None else _damaged(found.flaw)
    need = (
        f"nothing reads its offsets any more, because the table has batch {s.planned}"
        if s.lowest >= s.planned
        else f"batch {s.planned} begins where this batch ends, and the table does not have batch {s.planned} yet"
    )
    return _finding(
        "previous-offsets-missing",
        f"offsets/{before} {what}; {need}",
        s.evidence(flaw=found.flaw if found else "missing"),
    )


def newest_commit_damaged(s: Standing) -> RuleFinding | None:
    """E5: the commit file of the newest batch cannot be read."""
    found = s.checkpoint.commits.get(s.finished)
    if found is None or found.flaw is None:
        return None
    return _finding(
        "newest-commit-damaged",
        f"commits/{s.finished} {_damaged(found.flaw)}; without the file Spark runs batch {s.planned} again with the same "
        "range, and a native sink skips the batch if its table already has it",
        s.evidence(flaw=found.flaw),
    )


def commits_missing(s: Standing) -> RuleFinding | None:
    """Commit files are missing; a restart only needs to run the newest batch again."""
    is_gap = 0 <= s.planned and s.finished < s.planned - 1
    if not is_gap or s.lowest < s.floor or s.highest > s.planned:
        return None
    return RuleFinding(
        rule="commits-missing",
        verdict="repairable",
        sentence=f"commits end at {s.finished}, offsets at {s.planned}, and the table has all batches up to {s.lowest}: a "
        f"normal restart runs batch {s.planned} again, with the same range, and lands what the table does not have",
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
        "the table has that batch, so nothing is lost yet"
        if s.lowest >= 0
        else "nothing has landed yet: start a new checkpoint with the intended startingOffsets"
    )
    return _finding(
        "initial-offsets-missing",
        "sources/0/0 is damaged (the query does not start) or missing (Spark uses startingOffsets again; with latest it skips "
        f"the records that came since), and the first batch, which begins there, has not finished; {cost}",
        s.evidence(flaws=[file.flaw for file in s.checkpoint.initial.values() if file.flaw]),
    )


def offsets_out_of_order(s: Standing) -> RuleFinding | None:
    """The offsets from which a restart continues cannot have followed those of the batch before."""
    pairs = sorted({(batch + step - 1, batch + step) for batch in s.landed for step in (0, 1) if batch + step <= s.planned})
    for before, after in pairs:
        earlier, later = s.checkpoint.sound_offsets(before), s.checkpoint.sound_offsets(after)
        problem = follows(earlier, later) if after >= 0 and earlier is not None and later is not None else None
        if problem:
            return _finding(
                "offsets-out-of-order",
                f"offsets/{after} cannot follow {f'offsets/{before}' if before >= 0 else 'sources/0/0'}: {problem}; one of "
                "the two is a copy of another file, or was changed. A restart would read the records between them again, or "
                "skip them",
                s.evidence(batch=after),
            )
    return None


def offsets_unverified(s: Standing) -> RuleFinding | None:
    """Nothing confirms that Spark wrote the offsets from which a restart continues."""
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
            "this file has no .crc, but other files have one: it was changed or copied by hand, and the table's rows do not "
            "confirm its offsets",
        )
    if any(s.ranges.are_few(batch) for batch in unverified):
        return (
            "starting",
            "the table got more or fewer rows than this file has offsets, and there are too few batches yet to know whether "
            "that is normal",
        )
    return (
        "healthy",
        "there is no .crc, as in an object store, and the stream does not write one row per record: nothing verifies the "
        "offsets",
    )


def _damaged(flaw: str | None) -> str:
    if flaw == MISMATCH:
        return f"was changed after Spark wrote it ({flaw}): Spark does not notice this, and continues with the changed file"
    return f"cannot be read ({flaw}), so the query does not start"


def _id_sentence(s: Standing) -> str:
    if len(s.candidates) == 1:
        return f"The table's commits fit query {s.candidates[0]}: restore this id, unless that query is another stream"
    if s.candidates:
        return f"The table's commits fit {len(s.candidates)} queries ({', '.join(s.candidates)}): a person must choose one"
    return "No query in the table's history fits this checkpoint"


def _finding(rule: str, sentence: str, evidence: dict[str, object]) -> RuleFinding:
    return RuleFinding(rule=rule, verdict="needs_person", sentence=sentence, runbook=RUNBOOK, evidence=evidence)
