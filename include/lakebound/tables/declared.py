"""The pipelines that the YAML files declare, where two files name one table: the pipeline that has the table keeps it.

A file that names another pipeline's table must not take that pipeline away from whoever looks at it or runs it. Whose a table
is, its ledger says. Both files are still mistaken: ``lakebound check`` and ``lakebound status`` say so for both.
"""

from __future__ import annotations

from dataclasses import replace

from lakebound.settings import Settings
from lakebound.spec.claims import table_claim
from lakebound.spec.load import LoadedPipelines, choose_pipeline, load_pipelines
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.places import places_of

_NOT_MADE = ""
"""In place of the name of a table's pipeline: there is no such table yet."""


def owned_pipelines(settings: Settings) -> LoadedPipelines:
    """Return the pipelines that may run: of those that name one table only the one that its ledger names.

    Where the table does not exist yet, or cannot be read, none of them may: the order of files must not decide the owner.
    """
    return _settled(load_pipelines(settings), settings, new_goes_to_the_first=False)


def shown_pipelines(settings: Settings) -> LoadedPipelines:
    """Return the pipelines to look at: those that may run; of those that name a table that does not exist yet, the first."""
    return _settled(load_pipelines(settings), settings, new_goes_to_the_first=True)


def owned_pipeline(pipeline: str, settings: Settings) -> PipelineSpec:
    """Return one pipeline that may run.

    Args:
        pipeline: Its name.
        settings: Of this machine.

    Raises:
        InvalidSpecError: Its YAML is wrong, or names a table that is not its own.
        UnknownPipelineError: No file declares it.
    """
    return choose_pipeline(pipeline, owned_pipelines(settings), settings.pipelines)


def _settled(loaded: LoadedPipelines, settings: Settings, *, new_goes_to_the_first: bool) -> LoadedPipelines:
    if not loaded.contested:
        return loaded
    contested = {table_claim(one.spec, table): (one.spec, table) for one in loaded.contested.values() for table in one.tables}
    owners = {key: _owner(spec, table, settings) for key, (spec, table) in contested.items()}
    kept: dict[str, PipelineSpec] = {}
    for name, one in loaded.contested.items():
        keys = [table_claim(one.spec, table) for table in one.tables]
        if all(owners[key] == name or (new_goes_to_the_first and owners[key] == _NOT_MADE) for key in keys):
            kept[name] = one.spec
            owners |= dict.fromkeys(keys, name)
    return replace(loaded, specs=dict(sorted({**loaded.specs, **kept}.items())))


def _owner(spec: PipelineSpec, table: TableSpec, settings: Settings) -> str | None:
    """Return the pipeline that has made a table; None where that is in doubt."""
    from lakebound.tables.table import open_table  # not at every parsing of a DAG

    try:
        found = open_table(table, places_of(settings, spec.warehouse).read_only())
        if not found.exists():
            return _NOT_MADE
        entry = found.read_ledger().entry
    except Exception:  # a table that cannot be read, by whatever, is nobody's
        return None
    return None if entry is None else entry.pipeline
