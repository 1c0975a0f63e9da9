"""The action that has the catalog name a table's newest metadata again. The plan is pure."""

from __future__ import annotations

from lakebound.errors import CatalogBehindError
from lakebound.operations.recovery.conditions import HELD_MEANWHILE, refused
from lakebound.operations.recovery.facts import RecoveryFacts
from lakebound.operations.recovery.plan import RepairPlan, RepairStep
from lakebound.spec.table import TableSpec
from lakebound.tables.catalogs import catalog_of
from lakebound.tables.places import Places


def plan_repoint(facts: RecoveryFacts) -> RepairPlan:
    """Have the catalog name the newest metadata file of each table for which it names an older one.

    Raises:
        PlanRefusedError: It names the newest of each, or it cannot be told which is the newest.
    """
    unclear = [table for table in facts.tables if table.runbook == CatalogBehindError.runbook and table.behind is None]
    if unclear:
        raise refused(facts, "repoint", unclear[0].refusal or "")
    behind = {table.table: table.behind for table in facts.tables if table.behind is not None}
    if not behind:
        raise refused(facts, "repoint", "the catalog names the newest metadata of each table; there is nothing to do")
    steps = [
        RepairStep(
            what=f"{table}: the catalog names {_name(newest)} in place of {_name(named)}",
            table=table,
            detail={"pointer": {"from": named, "to": newest}},
        )
        for table, (named, newest) in behind.items()
    ]
    state = facts.control.desired.state
    return RepairPlan(
        pipeline=facts.pipeline,
        action="repoint",
        summary=f"set the catalog to the newest metadata of {' and '.join(behind)}",
        steps=tuple(steps),
        facts={"runbook": CatalogBehindError.runbook},
        notes=(HELD_MEANWHILE, f"the desired state stays {state}"),
    )


def repoint(spec: TableSpec, places: Places, step: RepairStep) -> str:
    """Do a step of the plan, and return the name of the file that the catalog then names.

    Args:
        spec: The step's table.
        places: Where tables are.
        step: The step.

    Raises:
        CommitRefusedError: The catalog names another file meanwhile.
    """
    pointer = step.detail["pointer"]
    catalog_of(spec.format).name_metadata(spec, places, pointer["from"], pointer["to"])
    return _name(pointer["to"])


def _name(location: str) -> str:
    return location.rpartition("/")[2]
