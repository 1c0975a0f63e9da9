"""``lakebound prove``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lakebound.cli.output import Json, number, print_json, print_rows, say, show

if TYPE_CHECKING:
    from lakebound.inspection.proof.result import Proof, TableProof
    from lakebound.settings import Settings
    from lakebound.spec.pipeline import PipelineSpec


def prove(
    pipeline: Annotated[str, typer.Argument(help="Pipeline name.")],
    table: Annotated[str | None, typer.Option("--table", help="Only this table: name or format:name.")] = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Compare every row with the records in Kafka, not only the ledger.")
    ] = False,
    json: Json = False,
) -> None:
    """Prove that every offset was landed, filtered or quarantined exactly once, or name the offsets that were not.

    For each table, RECORDS + FILTERED + QUARANTINED is the number of records that were read. A record that was released from
    quarantine counts once, as landed. Where older ledger entries were removed, the counts are those since the oldest entry
    that is kept, and OK names it: what landed before is compared by --deep alone.

    Of a pipeline with windows, --deep computes the closed windows again from Kafka, with Spark, and compares the rows. Where
    they could not be compared, OK says "entries only", and a note why.

    Exit code 1 if the proof fails.
    """
    from lakebound.control.folder import ControlFolder
    from lakebound.inspection.proof.collect import prove as prove_pipeline
    from lakebound.inspection.proof.record import record_proof
    from lakebound.settings import load_settings
    from lakebound.tables.declared import owned_pipeline
    from lakebound.tables.places import places_of

    settings = load_settings()
    spec = owned_pipeline(pipeline, settings)
    if deep:
        say(f"prove: comparing the rows of {len(spec.tables) + 1} tables with {', '.join(spec.topics)}")
    proof = prove_pipeline(spec, places_of(settings, spec.warehouse), deep=deep, table=table)
    if deep and spec.state is not None:
        proof = _with_windows(proof, spec, settings)
    if table is None:
        record_proof(ControlFolder(settings.home, pipeline), proof)
    if json:
        print_json(proof.model_dump(mode="json"))
    else:
        _print(proof)
    raise typer.Exit(0 if proof.ok else 1)


def _with_windows(proof: Proof, spec: PipelineSpec, settings: Settings) -> Proof:
    """Return the proof with the rows of closed windows beside those that Spark computes again from Kafka."""
    from lakebound.cli.prove_windows import compare_windows
    from lakebound.inspection.proof.windows import with_windows

    # A table whose ledger cannot be read has said so.
    tables = [one.table for one in proof.tables if one.role == "target" and one.source == "entry"]
    return with_windows(proof, compare_windows(spec, settings, tables)) if tables else proof


def _print(proof: Proof) -> None:
    headers = (
        "TABLE",
        "RECORDS",
        "ROWS",
        "FILTERED",
        "QUARANTINED",
        "MISSING",
        "DUPLICATED",
        "GAPS",
        "LAG",
        "COVERAGE BY",
        "OK",
    )
    print_rows(headers, [_row(found) for found in proof.tables], right=headers[1:9])
    for found in proof.tables:
        for problem in found.problems:
            show(f"{found.table}: {problem}")
        if found.role == "target" and found.released:
            show(
                f"{found.table}: {number(found.released)} of its RECORDS and FILTERED were in quarantine first: they are not "
                f"counted as QUARANTINED again, and their copies stay in the quarantine table"
            )
        for note in found.notes:
            show(f"{found.table}: note: {note}")
    show(proof.sentence)


def _row(found: TableProof) -> tuple[str, ...]:
    name = found.table + (" (quarantine)" if found.role == "quarantine" else "")
    quarantined = found.only_quarantined if found.role == "target" else found.quarantined
    counts = (found.records, found.rows, found.filtered, quarantined, found.missing.count, found.duplicated.count)
    rest = (found.gaps.count, found.lag)
    return (name, *(number(count) for count in (*counts, *rest)), found.source, _held(found))


def _held(found: TableProof) -> str:
    if not found.ok:
        return "NO"
    if found.is_partial:
        return f"{found.scope} only"
    return "entries only" if found.windows_compared is False else "yes"
