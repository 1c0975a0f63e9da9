"""What was found of a pipeline, read back from its folder."""

from __future__ import annotations

from lakebound.control.findings import Findings
from lakebound.control.folder import ControlFolder, read_json


def read_findings(control: ControlFolder) -> list[Findings]:
    """Return what every source last said of the pipeline, by the sources' names; empty when nothing ever looked."""
    files = sorted(control.findings.glob("*.json"))
    return [Findings.model_validate(body) for file in files if (body := read_json(file)) is not None]
