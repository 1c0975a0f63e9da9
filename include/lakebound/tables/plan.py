"""What the next start does with each table of a pipeline: it creates it, changes it, leaves it, or is refused. Pure.

``lakebound check`` and the start ask the same functions, so they say the same. What a table is, the table itself says: by its
columns, its partitioning, its properties and its ledger. The YAML says what a new table gets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lakebound.errors import ForeignTableError
from lakebound.spec.pipeline import PipelineSpec, SchemaEvolution
from lakebound.spec.table import PartitionField, TableSpec
from lakebound.tables.format_rules import rules_of
from lakebound.tables.schema_change import Path, SchemaPlan, plan_schema
from lakebound.tables.schemas import unusable_names

_PARTITIONING = ("partition_by",)


@dataclass(frozen=True)
class FoundTable:
    """An existing table.

    Attributes:
        schema: Its columns.
        fields: Its partitioning; None where it is of a kind that is not written here.
        reserved: Names of its partition fields, which no new column may have.
        properties: Its properties.
        owner: The pipeline that its ledger names; None without an entry.
        quarantine: Id of the quarantine table that its ledger names; None where it names none.
    """

    schema: pa.Schema
    fields: tuple[PartitionField, ...] | None = ()
    reserved: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    owner: str | None = None
    quarantine: str | None = None


@dataclass(frozen=True)
class Difference:
    """Why nothing can be landed in a table.

    Attributes:
        text: What is different, and what to do.
        keys: Where it is said in the YAML, below the table; empty: the table itself.
        column: The column or field that it is about; empty: none.
    """

    text: str
    keys: tuple[str, ...] = ()
    column: Path = ()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class TablePlan:
    """What is to be done with one table.

    Attributes:
        is_new: Whether it is created.
        columns: What is done with the columns of an existing one.
        properties: What is set of an existing one.
        differences: Why nothing can be landed in it; then nothing is done.
    """

    is_new: bool = False
    columns: SchemaPlan = field(default_factory=SchemaPlan)
    properties: Mapping[str, str] = field(default_factory=dict)
    differences: tuple[Difference, ...] = ()

    @property
    def is_change(self) -> bool:
        """Whether an existing table is altered."""
        return self.columns.is_change or bool(self.properties)

    def told(self) -> list[str]:
        """Return what is done, a sentence each."""
        if self.is_new:
            return ["is created, and gets what Kafka has of the topics"]
        return [*self.columns.told(), *(f"property {name} is set to {value}" for name, value in self.properties.items())]


def plan_table(
    spec: PipelineSpec, one: TableSpec, found: FoundTable | None, wanted: pa.Schema, value_fields: Sequence[str]
) -> TablePlan:
    """Return what the next start does with a table.

    Args:
        spec: The pipeline.
        one: The table, as the YAML says it.
        found: As it is; None where there is none yet.
        wanted: The columns that the pipeline gives it.
        value_fields: Top-level fields of the records' schema.
    """
    fixed = tuple(_unusable_properties(one))
    if found is None:
        return TablePlan(is_new=True, differences=(*fixed, *new_table_problems(one, wanted)))
    columns = plan_schema(found.schema, wanted, _policy(spec, one), one.format, value_fields, found.reserved)
    differences = (
        *fixed,
        *_ownership(spec, one, found),
        *_partitioning(one, found),
        *(Difference(str(one), column=one.path) for one in columns.differences),
        *_unchangeable(one, found),
    )
    return TablePlan(columns=columns, properties={} if differences else _properties(one, found), differences=differences)


def new_table_problems(one: TableSpec, wanted: pa.Schema) -> Iterator[Difference]:
    """Yield why a table with these columns cannot be created, as far as its names tell."""
    partitioned_by = {part.column for part in one.partition_fields()}
    rules = rules_of(one.format)
    for name in sorted(set(rules.partition_names(one)) & set(wanted.names) - partitioned_by):
        text = f"its partition field {name} would have the name of a column: give the column another name"
        yield Difference(text, column=(name,))
    for name, problem in unusable_names(one.format, wanted.names).items():
        yield Difference(f"its column {name!r} {problem}", column=(name,))


def _policy(spec: PipelineSpec, one: TableSpec) -> SchemaEvolution:
    # A later version of Lakebound gives the quarantine further columns; an earlier one leaves them null.
    return "add_columns" if one.id == spec.quarantine_table.id else spec.schema_evolution


def _ownership(spec: PipelineSpec, one: TableSpec, found: FoundTable) -> Iterator[Difference]:
    if found.owner is not None and found.owner != spec.pipeline:
        yield Difference(str(ForeignTableError(one.id, found.owner, spec.pipeline)), ("name",))
        return
    moved = found.quarantine is not None and found.quarantine != spec.quarantine_table.id
    if moved and one.id != spec.quarantine_table.id:
        yield Difference(
            f"its bad records are in {found.quarantine}, as its ledger says, and the YAML says {spec.quarantine_table.id}: "
            f"a quarantine cannot be moved, name the old one again"
        )


def _partitioning(one: TableSpec, found: FoundTable) -> Iterator[Difference]:
    wanted = one.partition_fields()
    if found.fields is None:
        text = "Lakebound cannot write its partitioning, such as by buckets: land into a new table"
        yield Difference(text, _PARTITIONING)
    elif found.fields != wanted:
        now, said = (f"[{', '.join(map(str, fields))}]" if fields else "nothing" for fields in (found.fields, wanted))
        keep = f"write partition_by: {now}" if found.fields else "remove partition_by"
        yield Difference(
            f"it is partitioned by {now}, and the YAML says {said}: the partitioning of a table cannot be changed; {keep}, or "
            f"land into a new table",
            _PARTITIONING,
        )


def _unusable_properties(one: TableSpec) -> Iterator[Difference]:
    """Yield what the YAML asks for that no table of ours can have."""
    rules = rules_of(one.format)
    fixed = rules.fixed_properties
    for name, value in one.properties.items():
        if name in fixed and value.strip().lower() != fixed[name]:
            yield Difference(f"property {name} is always {fixed[name]} here: remove it", ("properties", name))
        elif name in rules.unused_properties:
            text = f"property {name} is not used here: files lie in the table's own folder; remove it"
            yield Difference(text, ("properties", name))


def _unchangeable(one: TableSpec, found: FoundTable) -> Iterator[Difference]:
    for name, value in _properties(one, found).items():
        if not rules_of(one.format).is_changeable(name):
            now = found.properties.get(name, "not set")
            yield Difference(
                f"property {name} is {now} in the table and {value} in the YAML: it cannot be changed on an existing table "
                f"here; change the YAML back, or land into a new table",
                ("properties", name),
            )


def _properties(one: TableSpec, found: FoundTable) -> dict[str, str]:
    """Return the properties of the YAML that the table does not have so."""
    wanted = rules_of(one.format).wanted_properties(found.schema, one.properties)
    return {name: value for name, value in wanted.items() if found.properties.get(name) != value}
