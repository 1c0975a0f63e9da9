"""``lakebound late``: how late the late records of windows are, and what a longer watermark would have changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lakebound.cli.output import Json, duration, number, print_json, print_rows, show

if TYPE_CHECKING:
    from lakebound.inspection.late import LateReport


def late(pipeline: Annotated[str, typer.Argument(help="Pipeline name.")], json: Json = False) -> None:
    """Show how late the late records of a pipeline with windows are, and what a longer watermark would have changed.

    The lateness of a record is the time for which its window had been closed when the record was read. All late records in the
    quarantine count, also those that came under another watermark than the one in the YAML now. The command starts no Spark.
    """
    from lakebound.control.folder import ControlFolder
    from lakebound.control.progress import read_progress
    from lakebound.inspection.late import late_report
    from lakebound.settings import load_settings
    from lakebound.tables.declared import owned_pipeline
    from lakebound.tables.places import places_of

    settings = load_settings()
    spec = owned_pipeline(pipeline, settings)
    progress = read_progress(ControlFolder(settings.home, spec.pipeline))
    found = late_report(spec, places_of(settings, spec.warehouse), None if progress is None else progress.windows)
    if json:
        print_json(found.model_dump(mode="json") | {"records": found.records})
    else:
        _print(found)


def _print(found: LateReport) -> None:
    from lakebound.inspection.late import as_yaml

    if found.late:
        headers = ("REASON", "WINDOW", "RECORDS", "P50", "P90", "P99", "MAX")
        rows = [
            (
                one.reason,
                as_yaml(one.window_ms),
                number(one.records),
                *map(_late, (one.p50_ms, one.p90_ms, one.p99_ms, one.max_ms)),
            )
            for one in found.late
        ]
        print_rows(headers, rows, right=headers[1:])
    if found.longer:
        _print_longer(found)
    for reason, records in found.others.items():
        show(f"{found.table}: {number(records)} records are in no window for another reason: {reason}")
    if found.unread:
        why = "because their error text does not name a window"
        show(f"{found.table}: {number(found.unread)} late records are not counted, {why}")
    counted = f"{number(found.records)} late records in {found.table}"
    show(f"pipeline {found.pipeline}: watermark {as_yaml(found.watermark_ms)}; {counted}")


def _print_longer(found: LateReport) -> None:
    from lakebound.inspection.late import as_yaml

    headers = ("WATERMARK", "LATE RECORDS COUNTED", "ROWS LAND LATER BY", "OPEN ROWS*", "READ AGAIN BY A START*")
    now = (
        f"{as_yaml(found.watermark_ms)} (now)",
        _share(found.counted_now, found),
        "-",
        number(found.open_rows),
        number(found.rebuilt_offsets),
    )
    rows = [
        (
            as_yaml(one.watermark_ms),
            _share(one.counted, found),
            duration(one.later_ms / 1000),
            number(one.open_rows),
            number(one.rebuilt_offsets),
        )
        for one in found.longer
    ]
    print_rows(headers, [now, *rows], right=headers[1:])
    show("* the first line as the application reported it last; the others are estimates")


def _share(counted: int, found: LateReport) -> str:
    return f"{number(counted)} ({100 * counted / found.records:.0f} %)" if counted else "0"


def _late(milliseconds: int) -> str:
    return duration(milliseconds / 1000)
