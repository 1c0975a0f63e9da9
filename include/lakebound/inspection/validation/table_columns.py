"""The columns of tables that are there already, read without changing anything."""

from __future__ import annotations

from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.places import Places


def existing_columns(spec: PipelineSpec, places: Places) -> dict[str, dict[str, str]]:
    """Return the columns of the pipeline's tables, with their types; tables that cannot be read are left out."""
    if places.root.is_local and not places.root.path.is_dir():
        return {}
    # The libraries of both formats take a second to import: a pipeline without tables does without.
    from lakebound.tables.table import open_table
    from lakebound.tables.type_names import type_name

    found: dict[str, dict[str, str]] = {}
    for table in spec.tables:
        try:
            opened = open_table(table, places.read_only())
            if opened.exists():
                found[table.id] = {column.name: type_name(column.type) for column in opened.schema()}
        except Exception:
            continue  # whether a table can be read is the doctor's to say
    return found
