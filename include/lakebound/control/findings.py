"""Findings: what is wrong at this moment, as each part that looks says it; from them the alerts are made.

A source (the doctor, validation, maintenance, …) writes all that it finds wrong with a pipeline each time it has looked,
and an empty list when nothing is: what it no longer names is over. So no part has to remember what it said before.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from enum import StrEnum

from pydantic import Field

from lakebound.control.fallback_files import names_of_copies, read_newest_json, write_json_anyway
from lakebound.control.folder import ControlFolder
from lakebound.frozen import Frozen, FrozenRecord

Fact = str | int | float | bool | None


class Severity(StrEnum):
    """How much it matters: ``info`` is for reading, ``warning`` for today, ``critical`` wakes somebody up."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


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
    what: str
    since: float
    evidence: dict[str, Fact] = Field(default_factory=dict)
    runbook: str | None = None
    done: str = ""


class Findings(FrozenRecord):
    """All that one source last found wrong with one pipeline; ``at`` is epoch seconds."""

    source: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    pipeline: str
    at: float
    findings: tuple[Finding, ...] = ()


def write_findings(control: ControlFolder, source: str, findings: Iterable[Finding]) -> Findings:
    """Replace what the source said of this pipeline before, and return it.

    While the disk of the state takes no file, it is kept on a RAM disk: people must be told even then.

    Args:
        control: State folder of the pipeline, or of the watch itself.
        source: Which part has looked, such as ``doctor``; the file is named after it.
        findings: All that is wrong now; none means that everything found before is over.
    """
    found = Findings(source=source, pipeline=control.pipeline, at=time.time(), findings=tuple(findings))
    write_json_anyway(control.findings / f"{source}.json", found.model_dump(mode="json"))
    return found


def read_source(control: ControlFolder, source: str) -> Findings | None:
    """Return what a source last said of this pipeline; None when it never looked, or when the file cannot be read."""
    try:
        body = read_newest_json(control.findings / f"{source}.json")
        return None if body is None else Findings.model_validate(body)
    except (OSError, ValueError):
        return None


def read_sources(control: ControlFolder) -> tuple[list[Findings], list[str]]:
    """Return what every source last said of this pipeline, and a line for each file that cannot be read."""
    names = {file.name for file in control.findings.glob("*.json")} | names_of_copies(control.findings)
    found, problems = [], []
    for name in sorted(names):
        file = control.findings / name
        try:
            found.append(Findings.model_validate(read_newest_json(file)))
        except (OSError, ValueError) as exc:
            problems.append(f"{file} cannot be read: {type(exc).__name__}; what it named before stands")
    return found, problems


def found_before(before: Findings | None, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings, those that were there before with the time from which they were: for sources that know no other."""
    known = {finding.cause: finding.since for finding in before.findings} if before is not None else {}
    return tuple(one.model_copy(update={"since": min(one.since, known.get(one.cause, one.since))}) for one in findings)
