"""Versions of a schema that the registry has and the tables cannot follow: told before their records are missed."""

from __future__ import annotations

import time
from collections.abc import Mapping

from lakebound.control.findings import Finding, Severity, write_findings
from lakebound.control.folder import ControlFolder
from lakebound.formats.schemas import SchemaId
from lakebound.landing.table_settling import SOURCE

_MOST = 20


def tell_passed_over(control: ControlFolder, passed_over: Mapping[SchemaId, str]) -> None:
    """Write a finding for each version; without one, those that were written are over.

    Args:
        control: State folder of the pipeline.
        passed_over: Why the tables cannot follow, by what records say of the schema.
    """
    write_findings(control, SOURCE, [_finding(schema, reason) for schema, reason in [*passed_over.items()][:_MOST]])


def _finding(schema: SchemaId, reason: str) -> Finding:
    return Finding(
        cause=f"version {schema} of the schema",
        severity=Severity.WARNING,
        what=f"the tables cannot follow schema {schema} of the registry, and its records go to quarantine: {reason}",
        since=time.time(),
        evidence={"schema": str(schema)},
        runbook="schema-changed",
        done="the stream goes on with the version before; records of other versions land",
    )
