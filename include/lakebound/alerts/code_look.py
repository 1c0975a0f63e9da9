"""Looks at what a new version of the code makes of the records, and compares it with the version before.

Whoever has the doctor look (the watch, the DAG ``checkpoint_health``) looks here, too. While the code is new, the watch looks
every minute. One table is looked at: the tables of a pipeline get the same rows.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from lakebound.alerts.code_jumps import Jump, jumps
from lakebound.alerts.code_sampling import Sampled, sample
from lakebound.control.code_samples import CodeSamples, VersionSamples, read_samples, write_samples
from lakebound.control.findings import Finding, Severity, read_source, replace_findings
from lakebound.control.folder import ControlFolder
from lakebound.redaction import NOT_SHOWN, redacted
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.places import places_of
from lakebound.tables.table import open_table

log = logging.getLogger(__name__)

SOURCE = "code"
RUNBOOK = "bad-deploy"
TOLD_SECONDS = 86_400.0
"""After this time what the new code does is what is usual."""
_MOST_NAMED = 5


def look_at_code(spec: PipelineSpec, control: ControlFolder, settings: Settings) -> None:
    """Look at the newest commits of the first table that is there, and write down what differs since the code changed.

    A table that cannot be read is the doctor's to tell: nothing is said here then.

    Raises:
        OSError: The state folder cannot be written.
    """
    now, before = time.time(), read_samples(control)
    try:
        after = _looked(spec, settings, before, now)
    except Exception as exc:  # Each format's library has errors of its own.
        log.info("what the code makes of the records could not be looked at: %s", redacted(exc, NOT_SHOWN))
        return
    if after is None:
        return
    if after != before:
        write_samples(control, after)
    told = read_source(control, SOURCE)
    replace_findings(control, SOURCE, code_findings(after, told.findings if told else (), now))


def _looked(spec: PipelineSpec, settings: Settings, before: CodeSamples | None, now: float) -> CodeSamples | None:
    """Return the record after a look; None where no table can be looked at."""
    places = places_of(settings, spec.warehouse)
    for one in spec.tables:
        table = open_table(one, places)
        if not table.exists():
            continue
        known = before if before is not None and before.table == one.id else None
        found = sample(table.history(), table.schema().names, known.version if known else None, now)
        return known if found is None else _with(known, one.id, found)
    return None


def _with(known: CodeSamples | None, table: str, found: Sampled) -> CodeSamples:
    start = known or CodeSamples(table=table, version=found.version)
    return start.after(found.version, found.code, found.seen, found.values)


def code_findings(samples: CodeSamples, told: Sequence[Finding], now: float) -> tuple[Finding, ...]:
    """Return what differs since the code changed; what was found in its first time stays found for a day. Pure.

    Args:
        samples: The record of the looks.
        told: What was found at the last look.
        now: Epoch seconds.
    """
    before, current = samples.before, samples.current
    if before is None or current is None or current.is_known or before.hash == current.hash:
        return ()
    since = current.since_ms / 1000
    if not now - since < TOLD_SECONDS:
        return ()
    if current.is_past_first:
        return tuple(one for one in told if one.cause == _cause(current))
    found = jumps(before, current)
    return (_finding(found, before, current, samples.table),) if found else ()


def _cause(current: VersionSamples) -> str:
    return f"{current.hash}-{current.since_ms}"


def _finding(found: Sequence[Jump], before: VersionSamples, current: VersionSamples, table: str) -> Finding:
    named, rest = found[:_MOST_NAMED], len(found) - _MOST_NAMED
    more = f" and {rest} more" if rest > 0 else ""
    since = current.since_ms / 1000
    at = f"{datetime.fromtimestamp(since, UTC):%Y-%m-%d %H:%M} UTC"
    what = (
        f"the rows of {table} are different since other code makes them ({at}): "
        f"{'; '.join(one.sentence for one in named)}{more}; if this is not wanted, hold the pipeline before more such rows land"
    )
    return Finding(
        cause=_cause(current),
        severity=Severity.WARNING,
        what=what,
        since=since,
        evidence={
            "source": current.hash,
            "source_before": before.hash,
            "revision": current.revision,
            "revision_before": before.revision,
            "records": sum(one.read for one in current.first),
            "records_before": sum(one.read for one in before.slices),
        },
        runbook=RUNBOOK,
        done="the records are landed as the new code makes them",
    )
