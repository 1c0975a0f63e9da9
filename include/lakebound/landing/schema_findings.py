"""Versions of a schema that the registry has and the tables cannot follow: told before their records are missed."""

from __future__ import annotations

import time

from lakebound.control.findings import Finding, Severity, write_findings
from lakebound.control.folder import ControlFolder
from lakebound.formats.schemas import PartOfRecord, SchemaId
from lakebound.landing.read_schemas import PassedOver
from lakebound.landing.table_settling import SOURCE

_MOST = 20


def tell_passed_over(control: ControlFolder, passed_over: PassedOver) -> None:
    """Write a finding for each version; without one, those that were written are over.

    Args:
        control: State folder of the pipeline.
        passed_over: Why the tables cannot follow, by what records say of the schema.
    """
    found = [_finding(part, schema, why) for part, schemas in passed_over.items() for schema, why in schemas.items()]
    write_findings(control, SOURCE, found[:_MOST])


def _finding(part: PartOfRecord, schema: SchemaId, reason: str) -> Finding:
    return Finding(
        cause=f"version {schema} of the schema" if part == "value" else f"version {schema} of the key's schema",
        severity=Severity.WARNING,
        what=f"the tables cannot follow schema {schema} of the registry, and its records go to quarantine: {reason}",
        since=time.time(),
        evidence={"schema": str(schema), "part": part},
        runbook="schema-changed",
        done="the stream goes on with the version before; records of other versions land",
    )
