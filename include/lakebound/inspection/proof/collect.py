"""Collects what a proof is judged by: ledgers first, then rows, then what Kafka has. Writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from lakebound.errors import (
    BadEntryError,
    LakeboundError,
    MissingTopicError,
    NoLedgerError,
    OpenTransactionError,
    RowsNotReadError,
    UnknownTableError,
)
from lakebound.inspection.proof.facts import Readable, TableAsFound
from lakebound.inspection.proof.judgement import hull, judge
from lakebound.inspection.proof.readable_offsets import read_offsets
from lakebound.inspection.proof.real_time import sent_at_least_once
from lakebound.inspection.proof.result import Proof, TableProof
from lakebound.inspection.proof.windows import NOT_COMPARED
from lakebound.inspection.validation.quarantine_copies import without_copies
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.other_target import OtherTarget
from lakebound.landing.target_kind import opened, target_kinds
from lakebound.landing.to_topics.scan import scan_sources
from lakebound.ledger.entry import Offsets
from lakebound.ledger.intervals import Interval
from lakebound.ledger.topics import TopicFacts
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableRole
from lakebound.spec.tombstones import WITHOUT_ROWS
from lakebound.tables.contents import contents_of
from lakebound.tables.erased import read_erased
from lakebound.tables.places import Places
from lakebound.tables.table import CommittedEntry, Table, open_table

_READINGS = 3
Proved = Table | OtherTarget
"""What a pipeline lands in."""


def prove(
    spec: PipelineSpec, places: Places, *, deep: bool = False, table: str | None = None, facts: KafkaFacts | None = None
) -> Proof:
    """Return whether every offset was landed, filtered or quarantined once. A stream may run meanwhile.

    Args:
        spec: The pipeline.
        places: Where its tables are.
        deep: Judge the rows against what Kafka has, not the entries alone; reads the topics and ``_kafka`` of every row.
        table: Name or id of the one table whose proof is wanted; the others are read, too, for comparison.
        facts: Whom to ask about Kafka.

    Raises:
        UnknownTableError: The pipeline has no such table.
        BrokerUnavailableError: Kafka does not answer.
        MissingSecretError: The connection's secret is not there.
    """
    wanted = None if table is None else table_id(spec, table, with_topics=True)
    broker = facts or KafkaFacts(spec.connection)
    deep = deep and spec.state is None
    tables = _read_tables(spec, places, deep=deep)
    topics = _topics(broker, spec.topics)
    readable: Readable | None = None
    if deep:
        readable = _readable(spec, tables, topics)
        # What was deleted while it was read is no longer expected to be found.
        topics = _topics(broker, spec.topics)
    may_filter = spec.transform is not None or spec.null_values in WITHOUT_ROWS
    proof = judge(spec.pipeline, tables, topics, readable=readable, may_filter=may_filter, table=wanted)
    proof = _with_rows_of_tables(_with_totals(proof, tables, spec, deep=deep), spec, places)
    return proof if spec.state is None else _of_windows(proof)


def _of_windows(proof: Proof) -> Proof:
    """Return the proof of a pipeline with state with what it does not say."""
    tables = (one if one.role == "quarantine" else one.adding(notes=[NOT_COMPARED]) for one in proof.tables)
    return proof.model_copy(update={"tables": tuple(tables)})


def table_id(spec: PipelineSpec, name: str, *, with_topics: bool = False) -> str:
    """Return the id of the pipeline's table that is called so.

    Args:
        spec: The pipeline.
        name: Name or id.
        with_topics: Whether a target topic or store may be meant, too.

    Raises:
        UnknownTableError: None is, or several are.
    """
    others = [one.id for one in spec.other_targets] if with_topics else []
    ids = [*(one.id for one in spec.tables), *others, spec.quarantine_table.id]
    matches = [found for found in ids if name in (found, found.partition(":")[2])]
    if len(matches) != 1:
        raise UnknownTableError(spec.pipeline, name, ids)
    return matches[0]


def _read_tables(spec: PipelineSpec, places: Places, *, deep: bool) -> list[TableAsFound]:
    """Read all ledgers, then all rows, the quarantine last each time: bad records are committed before the coverage of them."""
    tables: list[Proved] = [open_table(one, places) for one in spec.tables]
    tables += [*(target for _, target in opened(spec)), open_table(spec.quarantine_table, places)]
    read: list[TableAsFound] = []
    for _ in range(_READINGS):
        ledgers = [_read_ledger(table, "target") for table in tables[:-1]] + [_read_ledger(tables[-1], "quarantine")]
        if not deep:
            return ledgers
        read = [_with_rows(table, ledger) for table, ledger in zip(tables, ledgers, strict=True)]
        # A rewind between two tables: what was read of one before it and of another after it does not fit together.
        if all(found.entries[:1] == ledger.entries[:1] for found, ledger in zip(read, ledgers, strict=True)):
            break
    else:
        reason = "the tables are being rewound: prove them again when that is done"
        read = [replace(facts, source="none", error=reason) for facts in read]
    read = [_with_columns(table, facts) for table, facts in zip(tables, read, strict=True)]
    return [_sent_in_real_time(spec, facts) if _is_real_time(facts) else facts for facts in read]


def _is_real_time(facts: TableAsFound) -> bool:
    by_totals = facts.totals is not None and facts.totals.real_time_rows > 0
    return facts.rows is not None and (by_totals or any(found.entry.delivery is not None for found in facts.entries))


def _sent_in_real_time(spec: PipelineSpec, facts: TableAsFound) -> TableAsFound:
    """Return the facts with each row once, and with the records that went to the quarantine topic."""
    rows, note = sent_at_least_once(facts.rows, facts.coverage)
    ids = {topic: held.topic_id for topic, held in facts.coverage.items()}
    try:
        bad = scan_sources(spec.connection, spec.quarantine_topic, ids)
    except MissingTopicError:
        bad = rows.slice(0, 0)
    if bad is None:
        return replace(facts, rows=None)  # Kafka has deleted some, or may: what is missing cannot be told from what was bad
    return replace(facts, rows=rows, bad_rows=sent_at_least_once(bad, facts.coverage)[0], note=note)


def _read_ledger(table: Proved, role: TableRole) -> TableAsFound:
    facts = TableAsFound(table.spec.id, role)
    try:
        if not table.exists():
            return replace(facts, exists=False)
        view = table.read_ledger()
        if view.entry is None:
            return facts
        entries = _readable_entries(table)
        former, released = view.entry.former, view.released
        facts = replace(facts, source="entry", coverage=view.coverage, former=former, released=released, entries=entries)
        if isinstance(table, OtherTarget):
            return replace(facts, totals=table.totals)
        return replace(facts, erased=read_erased(table, view.entry))
    except NoLedgerError as exc:
        return replace(facts, error=str(exc)) if isinstance(table, OtherTarget) else _reconstructed(table, facts, exc)
    except LakeboundError as exc:
        return replace(facts, error=str(exc))


def _readable_entries(table: Proved) -> tuple[CommittedEntry, ...]:
    """Return the entries newest first, down to the birth or to one that cannot be read, which a reset has replaced."""
    found: list[CommittedEntry] = []
    try:
        for committed in table.entries():
            found.append(committed)
    except BadEntryError:
        return tuple(found)
    return tuple(found)


def _reconstructed(table: Table, facts: TableAsFound, reason: NoLedgerError) -> TableAsFound:
    try:
        found = table.reconstruct()
    except LakeboundError as exc:
        return replace(facts, error=f"{reason}; and of its rows: {exc}")
    return replace(facts, error=str(reason)) if found is None else replace(facts, source=found.source, coverage=found.coverage)


def _with_rows(table: Proved, facts: TableAsFound) -> TableAsFound:
    """Return the facts with the rows, and with the coverage as it stands after them.

    A rewind between the two readings takes rows away that the first one expects: then everything is read again.
    """
    for _ in range(_READINGS):
        if facts.source == "none":
            # Where the quarantine's ledger cannot be read, its rows still say what is not missing from the targets.
            return replace(facts, rows=_rows(table, facts)) if facts.error and facts.role == "quarantine" else facts
        try:
            rows = _rows(table, facts)
        except (OpenTransactionError, RowsNotReadError) as exc:
            return replace(facts, source="none", error=str(exc))
        if rows is None:
            return facts
        later = (facts.coverage, ()) if facts.source != "entry" else _said_since(table, facts.entries[0].version)
        if later is not None:
            coverage, releases = later
            return replace(facts, rows=rows, later_coverage=coverage, later_releases=releases)
        facts = _read_ledger(table, facts.role)
    return replace(facts, source="none", error=f"table {facts.table} is being rewound: prove it again when that is done")


def _with_columns(table: Proved, facts: TableAsFound) -> TableAsFound:
    """Return the facts with what readers make of the columns; offsets alone do not say it."""
    if isinstance(table, OtherTarget) or not facts.exists:
        return facts
    try:
        return replace(facts, columns=table.misread_columns())
    except Exception:
        if facts.error is None:
            raise
        return facts  # why it cannot be read is known already


def _rows(table: Proved, facts: TableAsFound) -> pa.Table | None:
    """Return where the rows come from; None where they cannot be told from the target."""
    if isinstance(table, OtherTarget):
        return table.scan_sources({topic: held.topic_id for topic, held in facts.coverage.items()})
    rows = table.scan_kafka()
    return without_copies(rows) if facts.role == "quarantine" else rows


def _with_rows_of_tables(proof: Proof, spec: PipelineSpec, places: Places) -> Proof:
    """Return the proof with the rows of each table of which only some entries are kept, so that nobody takes a part for all."""
    specs = {one.id: one for one in (*spec.tables, spec.quarantine_table)}
    found = []
    for one in proof.tables:
        if one.is_partial and one.table in specs:
            rows = contents_of(specs[one.table], places).size().rows
            one = one.adding(table_rows=rows, notes=[partial_note(one, rows)])
        found.append(one)
    return proof.model_copy(update={"tables": tuple(found)})


def partial_note(proof: TableProof, table_rows: int) -> str:
    """Return what a proof by some of a table's entries proves, and of what."""
    return (
        f"RECORDS {proof.records:,} and ROWS {proof.rows:,} are those of the entries that are kept ({proof.scope}). The table "
        f"has {table_rows:,} rows by its metadata. Of {proof.assumed:,} offsets that landed before these entries nothing was "
        f"compared: --deep compares every row with Kafka, as far back as Kafka keeps records"
    )


def _with_totals(proof: Proof, tables: Sequence[TableAsFound], spec: PipelineSpec, *, deep: bool) -> Proof:
    """Return the proof with the counts of other targets from the sums in their ledgers where their rows were not counted.

    Compaction keeps the newest entries only, and a store the newest one, so that these do not add up to what has landed.
    """
    why = {one.id: kind.not_compared for kind in target_kinds() for one in kind.specs(spec)}
    totals = {facts.table: facts.totals for facts in tables if facts.totals is not None and facts.rows is None}
    found = []
    for one in proof.tables:
        known = totals.get(one.table)
        if known is not None:
            counts = {name: getattr(known, name) for name in ("rows", "filtered", "quarantined")}
            notes = [why[one.table]] if deep else []
            one = one.adding(records=known.landed, notes=notes, **counts)
        found.append(one)
    return proof.model_copy(update={"tables": tuple(found)})


def _said_since(table: Proved, version: str) -> tuple[Offsets, tuple[Offsets, ...]] | None:
    """Return the coverage now and what was released since, or None when the table does not merely continue that version."""
    releases: list[Offsets] = []
    try:
        coverage = table.read_ledger().coverage
        for committed in table.entries():
            if committed.version == version:
                return coverage, tuple(releases)
            releases.append(committed.entry.releases)
            if committed.entry.kind in ("reset", "erase", "redo"):
                return None
    except LakeboundError:
        # Whatever it is, reading everything again will say it.
        return None
    return None


def _topics(broker: KafkaFacts, names: Sequence[str]) -> dict[str, TopicFacts | None]:
    try:
        return dict(broker.topics(names))
    except MissingTopicError:
        if len(names) == 1:
            return {names[0]: None}
    return {name: facts for topic in names for name, facts in _topics(broker, [topic]).items()}


def _readable(spec: PipelineSpec, tables: Sequence[TableAsFound], topics: dict[str, TopicFacts | None]) -> Readable:
    """Read, of every topic that is the same still, what lies between the first and the last offset that a target covers."""
    wanted: dict[tuple[str, int], Interval] = {}
    for facts in tables:
        if facts.role == "quarantine":
            continue
        for place, (start, end) in _first_and_last(facts, topics).items():
            known = wanted.get(place, (start, end))
            wanted[place] = (min(start, known[0]), max(end, known[1]))
    return read_offsets(spec.connection, wanted)


def _first_and_last(facts: TableAsFound, topics: dict[str, TopicFacts | None]) -> dict[tuple[str, int], Interval]:
    found: dict[tuple[str, int], Interval] = {}
    for topic, held in hull(facts.coverage).items():
        known = topics.get(topic)
        if known is None or known.topic_id != held.topic_id:
            continue
        for partition, ((start, end),) in held.partitions.items():
            if partition in known.latest:
                found[topic, partition] = (max(start, known.earliest[partition]), min(end, known.latest[partition]))
    return found
