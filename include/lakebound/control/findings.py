"""Findings: what is wrong at this moment, as each part that looks says it; from them the alerts are made.

A source (the doctor, validation, maintenance, …) writes all that it finds wrong with a pipeline each time it has looked,
and an empty list when nothing is: what it no longer names is over. So no part has to remember what it said before.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from lakebound.control.bounds import within_calendar
from lakebound.control.fallback_files import locked_anyway, names_of_copies, read_newest_json, write_json_anyway
from lakebound.control.folder import ControlFolder, change_text, files_in
from lakebound.control.state_text import clean_text
from lakebound.first_line import first_line
from lakebound.frozen import Frozen, FrozenRecord

Fact = str | int | float | bool | None


def shown_facts(evidence: Mapping[str, Fact]) -> dict[str, Fact]:
    """Return facts that every message and page can hold: texts without halves of characters, what is no number as a text."""
    return {clean_text(name): _shown(fact) for name, fact in evidence.items()}


def _shown(fact: Fact) -> Fact:
    if isinstance(fact, float) and not math.isfinite(fact):
        return str(fact)
    return clean_text(fact) if isinstance(fact, str) else fact


Text = Annotated[str, AfterValidator(clean_text)]
"""What people read: another program may have written it into the file."""
Since = Annotated[float, AfterValidator(within_calendar)]
"""Epoch seconds that a message can show."""
Evidence = Annotated[dict[str, Fact], AfterValidator(shown_facts)]
"""Facts by name, few and short."""


class Severity(StrEnum):
    """How much it matters: ``info`` is for reading, ``warning`` for today, ``critical`` wakes somebody up."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


_SEEN_ANYWAY = frozenset({"doctor", "incidents", "stream", "unknown_fields"})
"""Sources of which status and doctor say the same in their own words."""


class Finding(Frozen):
    """One thing that is wrong with a pipeline.

    Attributes:
        cause: What tells it from other findings of its source, the same each time it is found: one cause, one alert.
        what: One sentence.
        since: Epoch seconds from which it is wrong, as far as the source knows.
        evidence: The facts that show it, few and short; never a secret.
        runbook: Name of the page in ``include/runbooks``, without its ending.
        done: What was already done about it without a person.
    """

    cause: str = Field(min_length=1)
    severity: Severity
    what: Text
    since: Since
    evidence: Evidence = Field(default_factory=dict)
    runbook: str | None = None
    done: Text = ""


class Findings(FrozenRecord):
    """All that one source last found wrong with one pipeline; ``at`` is epoch seconds."""

    source: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    pipeline: str
    at: Since
    findings: tuple[Finding, ...] = ()


def write_findings(control: ControlFolder, source: str, findings: Iterable[Finding]) -> Findings:
    """Replace what the source said of this pipeline before, and return it.

    While the disk of the state takes no file, it is kept on a RAM disk: people must be told even then.

    Args:
        control: State folder of the pipeline, or of the watch itself.
        source: Which part has looked, such as ``doctor``; the file is named after it.
        findings: All that is wrong now; none means that everything found before is over.
    """
    found = _findings(control, source, findings)
    write_json_anyway(control.findings / f"{source}.json", found.model_dump(mode="json"))
    return found


def change_findings(
    control: ControlFolder, source: str, decide: Callable[[tuple[Finding, ...]], Iterable[Finding]]
) -> Findings:
    """Replace what the source said before by what is decided on it, where several processes write for one source.

    Args:
        control: State folder of the pipeline.
        source: Which part has looked.
        decide: Gets what it said before, nothing where that cannot be read, and returns what is wrong now.

    Raises:
        LockHeldError: Others hold the file for too long.
    """
    file = control.findings / f"{source}.json"
    if isinstance(file, Path):
        with locked_anyway(file):
            before = read_source(control, source)
            return write_findings(control, source, decide(before.findings if before else ()))
    found: list[Findings] = []

    def change(text: str | None) -> str:
        found.append(_findings(control, source, decide(_said_in(text))))
        return json.dumps(found[-1].model_dump(mode="json"))

    change_text(file, change)
    return found[-1]


def _findings(control: ControlFolder, source: str, findings: Iterable[Finding]) -> Findings:
    return Findings(source=source, pipeline=control.pipeline, at=time.time(), findings=tuple(findings))


def _said_in(text: str | None) -> tuple[Finding, ...]:
    try:
        return () if text is None else Findings.model_validate_json(text).findings
    except ValueError:
        return ()


def read_source(control: ControlFolder, source: str) -> Findings | None:
    """Return what a source last said of this pipeline; None when it never looked, or when the file cannot be read."""
    try:
        body = read_newest_json(control.findings / f"{source}.json")
        return None if body is None else Findings.model_validate(body)
    except (OSError, ValueError):
        return None


def read_sources(control: ControlFolder) -> tuple[list[Findings], list[str]]:
    """Return what every source last said of this pipeline, and a line for each file that cannot be read."""
    names = {file.name for file in files_in(control.findings, "*.json")} | names_of_copies(control.findings)
    found, problems = [], []
    for name in sorted(names):
        file = control.findings / name
        try:
            found.append(Findings.model_validate(read_newest_json(file)))
        except (OSError, ValueError) as exc:
            problems.append(f"{file} cannot be read: {type(exc).__name__}; the findings that were read before still apply")
    return found, problems


def told_by_others(sources: Iterable[Findings], most: int = 3) -> list[str]:
    """Return what is wrong and only its own source says, in a line each: validation, maintenance, checks of users.

    What status and doctor see by themselves is left out.

    Args:
        sources: What every source last said of one pipeline.
        most: Number of findings that have a line; of the others the last line gives the number.
    """
    found = [
        f"{one.severity.value} ({source.source}): {first_line(one.what)}{f' (runbook {one.runbook})' if one.runbook else ''}"
        for source in sources
        if source.source not in _SEEN_ANYWAY
        for one in sorted(source.findings, key=lambda one: one.severity is not Severity.CRITICAL)
        if one.severity is not Severity.INFO
    ]
    rest = len(found) - most
    return [*found[:most], f"{rest} more: lakebound alerts"] if rest > 0 else found


def found_before(before: Findings | None, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings, those that were there before with the time from which they were: for sources that know no other."""
    known = {finding.cause: finding.since for finding in before.findings} if before is not None else {}
    return tuple(one.model_copy(update={"since": min(one.since, known.get(one.cause, one.since))}) for one in findings)


def replace_findings(control: ControlFolder, source: str, findings: Iterable[Finding]) -> None:
    """Write what a source found, what it found before with its time; nothing where it never found anything.

    Args:
        control: State folder of the pipeline, or of the watch itself.
        source: Which part has looked.
        findings: All that is wrong now.

    Raises:
        OSError: The folder cannot be written.
    """
    before, found = read_source(control, source), tuple(findings)
    if found or before is not None:
        write_findings(control, source, found_before(before, found))
