"""Pipeline files with mistakes: nobody looks at such a pipeline. Pure."""

from __future__ import annotations

from lakebound.control.findings import Finding, Severity
from lakebound.spec.load import LoadedPipelines
from lakebound.spec.problem_lines import shown_line

SOURCE = "pipeline_files"


def pipeline_file_findings(loaded: LoadedPipelines, now: float) -> tuple[Finding, ...]:
    """Return a finding for each file with mistakes; the mistakes themselves may quote what is in the file."""
    return tuple(
        Finding(
            cause=shown_line(path.stem),
            severity=Severity.WARNING,
            what=f"{shown_line(path.name)} has mistakes ({len(lines)}), so this pipeline is not checked, and its next start is "
            f"refused; `lakebound check --static` names them",
            since=now,
            evidence={"file": shown_line(str(path))},
            runbook="refused",
        )
        for path, lines in loaded.mistakes.items()
        # A folder that is not there is no pipeline's mistake.
        if path.suffix and path.stem not in loaded.specs
    )
