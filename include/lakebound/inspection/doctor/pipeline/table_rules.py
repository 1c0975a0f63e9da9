"""Rules about the tables of a pipeline: each looks at the facts and says what it found. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from lakebound.inspection.doctor.diagnosis import RuleFinding
from lakebound.inspection.doctor.pipeline.facts import PipelineFacts
from lakebound.inspection.doctor.wording import listed, marks_of, needs_person, offsets_of, repairable
from lakebound.ledger.entry import common, count


def rows_without_entry(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """Rows of unknown origin: which offsets the table has is not known, so nothing may be written."""
    for table in facts.tables:
        if table.state == "no_ledger":
            yield needs_person("rows-without-entry", table.problem, "no-ledger", table=table.table, holds="rows", entry=None)


def entry_unreadable(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """The newest entry is damaged or forged: with an older one, rows would be landed twice."""
    for table in facts.tables:
        if table.state == "bad_entry":
            sentence = f"{table.problem}; an application refuses to start, because with an older entry it would land rows twice"
            yield needs_person("entry-unreadable", sentence, "bad-entry", table=table.table)


def entry_newer(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """The newest entry was written by a later version of Lakebound, which must be used here, too."""
    for table in facts.tables:
        if table.state == "newer_entry":
            yield needs_person("entry-newer", table.problem, "newer-entry", table=table.table)


def foreign_table(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """Another pipeline lands in the table."""
    for table in facts.tables:
        if table.state == "foreign":
            yield needs_person("foreign-table", table.problem, "foreign-table", table=table.table)


def table_restored(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """Rows were removed without a ledger entry."""
    for table in facts.tables:
        if table.state == "restored":
            evidence = {"table": table.table, "ledger": "its newest entry is about rows from before the restore"}
            yield needs_person("table-restored", table.problem, "table-restored", **evidence)


def catalog_behind(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """The Iceberg catalog is an older copy: a start from there would fork the table's history."""
    for table in facts.tables:
        if table.state == "behind":
            yield needs_person("catalog-behind", table.problem, "catalog-behind", table=table.table)


def table_feature(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """Somebody has switched on what is not written rightly here: each start is refused, and a running stream stops."""
    for table in facts.tables:
        if table.refusal is not None:
            yield needs_person("table-feature", table.refusal.sentence, table.refusal.runbook, table=table.table)


def table_unreadable(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """Catalog or disk does not answer. A running application waits; what a start would find is not known."""
    for table in facts.tables:
        if table.state != "unreadable":
            continue
        sentence = f"table {table.table} could not be read: {table.problem}"
        if facts.living is not None:
            yield RuleFinding(
                rule="table-unreadable",
                verdict="starting",
                sentence=f"{sentence}; the application keeps trying for limits.outage_seconds; run the doctor again later",
                runbook="table-unreadable",
            )
        else:
            yield needs_person("table-unreadable", sentence, "table-unreadable", table=table.table)


def table_dropped(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """A table that had landed rows is gone: a start would create it and begin at Kafka's earliest offset."""
    landed = {name for name, table in facts.progress.tables.items() if table.rows} if facts.progress else set()
    others = any(count(table.coverage) for table in facts.targets)
    for table in facts.tables:
        lost = table.table in landed if table.role == "target" else others
        if table.state in ("absent", "empty") and lost:
            sentence = (
                f"table {table.table} had landed rows and is gone, or somebody else created it again; a start would create it "
                f"and begin at Kafka's earliest offset. Restore the table. If you want an empty table instead, stop the "
                f"pipeline and remove its progress.json"
            )
            yield needs_person("table-dropped", sentence, "table-dropped", table=table.table, state=table.state)


def quarantine_behind(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """The quarantine lacks records that the tables say are in it. Bad records are committed before all others."""
    held = next((table for table in facts.tables if table.role == "quarantine" and table.state == "entry"), None)
    if held is None:
        return
    for table in facts.targets:
        if table.quarantined_range and not common(table.quarantined_range, held.coverage):
            sentence = (
                f"table {table.table} says that records of its newest commits are in {held.table}, but the ledger of "
                f"{held.table} does not have them: that table was dropped, rolled back or restored from an older copy. A start "
                f"would not land them again"
            )
            evidence = {"table": offsets_of(table.quarantined_range), "quarantine": marks_of(held.coverage)}
            yield needs_person("quarantine-behind", sentence, "table-dropped", **evidence)
            return


def ledger_behind_rows(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """The entry that counts was copied by maintenance, and is older than rows of the table."""
    for table in facts.tables:
        if table.beyond_ledger:
            doubled = count(table.beyond_ledger)
            sentence = (
                f"table {table.table} has rows of {doubled} offsets that are not in its ledger: the commits that landed them "
                f"were expired, and an older entry was copied. A start would land these rows twice"
            )
            evidence = {"rows": offsets_of(table.beyond_ledger), "ledger": marks_of(table.coverage)}
            yield needs_person("ledger-behind-rows", sentence, "ledger-behind", **evidence)


def ledger_behind_txn(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """The Delta log names a later application than the newest entry does."""
    for table in facts.tables:
        if table.entry is not None and table.txn_epoch is not None and table.txn_epoch > table.entry.epoch:
            sentence = (
                f"table {table.table} was written by epoch {table.txn_epoch} (its txn), but its newest entry is of epoch "
                f"{table.entry.epoch}: an entry is missing in its log, and a start would land the rows of that entry twice"
            )
            evidence = {"txn_epoch": table.txn_epoch, "entry_epoch": table.entry.epoch, "version": table.version}
            yield needs_person("ledger-behind-txn", sentence, "ledger-behind", **evidence)


def tables_disagree(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """Tables of one pipeline have offsets of different incarnations of a topic: no common next offset exists."""
    for topic in facts.spec.topics:
        ids = {table.table: table.coverage[topic].topic_id for table in facts.tables if topic in table.coverage}
        if len(set(ids.values())) > 1:
            sentence = f"the tables have offsets of different incarnations of topic {topic!r}: {listed(ids)}"
            yield needs_person("tables-disagree", sentence, "tables-disagree", topic_ids=ids)


def state_folder_behind(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """The tables have a later epoch than the lease: the state folder was lost, is an old copy, or there are two."""
    highest = max((table.entry.epoch for table in facts.tables if table.entry), default=0)
    own = facts.lease.epoch if facts.lease is not None else 0
    if highest <= own or "lease" in facts.unreadable:
        return
    evidence = {"lease_epoch": own, "ledger_epoch": highest}
    if facts.lease_live:
        sentence = (
            f"the application that runs here has epoch {own}, but a table was written by epoch {highest}: another state "
            f"folder is in use for this pipeline. The tables refuse the older epoch; find out which LAKEBOUND_HOME is right"
        )
        yield needs_person("two-state-folders", sentence, "state-folder", **evidence)
        return
    sentence = (
        f"the state folder has epoch {own}, but the tables have epoch {highest}: the folder was lost or is an old copy. The "
        f"next start takes epoch {highest + 1} and continues from the tables"
    )
    yield repairable("state-folder-behind", sentence, "state-folder", **evidence)


TABLE_RULES = (
    rows_without_entry,
    entry_unreadable,
    entry_newer,
    foreign_table,
    table_restored,
    catalog_behind,
    table_feature,
    table_unreadable,
    table_dropped,
    quarantine_behind,
    ledger_behind_rows,
    ledger_behind_txn,
    tables_disagree,
    state_folder_behind,
)
