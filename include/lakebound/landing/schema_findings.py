"""Versions of a schema that the registry has and that cannot be read or followed: told before their records are missed."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from lakebound.control.findings import Finding, Severity, write_findings
from lakebound.control.folder import ControlFolder
from lakebound.formats.schemas import PartOfRecord, SchemaId
from lakebound.landing.read_schemas import PassedOver
from lakebound.landing.table_settling import SOURCE

_MOST = 20


def tell_not_followed(
    control: ControlFolder, not_followed: PassedOver, reused: Mapping[PartOfRecord, Collection[SchemaId]]
) -> None:
    """Write a finding for each version; without one, those that were written are over.

    Args:
        control: State folder of the pipeline.
        not_followed: Why nothing is read with the schema, or why the tables cannot follow, by what records say of it.
        reused: Those whose id meant another schema before.
    """
    found = [
        _finding(part, schema, why, is_reused=schema in reused.get(part, ()))
        for part, schemas in not_followed.items()
        for schema, why in schemas.items()
    ]
    write_findings(control, SOURCE, found[:_MOST])


def _finding(part: PartOfRecord, schema: SchemaId, reason: str, *, is_reused: bool) -> Finding:
    return Finding(
        cause=f"version {schema} of the schema" if part == "value" else f"version {schema} of the key's schema",
        severity=Severity.WARNING,
        what=f"records of schema {schema} of the registry do not land, and go to quarantine: {reason}",
        since=time.time(),
        evidence={"schema": str(schema), "part": part},
        runbook="schema-id-reused" if is_reused else "schema-changed",
        done="the stream goes on with the version before; records of other versions land",
    )
