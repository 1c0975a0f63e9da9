"""``lakebound check`` and ``lakebound schema``: pipeline files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakebound.cli.output import Json, print_json, say, show

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from lakebound.cli.plan_check import SparkPlan
    from lakebound.inspection.store_cost import StoreCost
    from lakebound.inspection.validation.expectation_types import TableColumns
    from lakebound.settings import Settings
    from lakebound.spec.pipeline import PipelineSpec

SCHEMA_FILE = Path("include/pipeline.schema.json")
ALERTS_FILE = "alerts.yaml"
REGISTRIES_FILE = "registries.yaml"
_FILES_OF_OPERATORS = (ALERTS_FILE, REGISTRIES_FILE)


@dataclass
class _Report:
    specs: dict[Path, PipelineSpec] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    warnings: dict[str, list[str]] = field(default_factory=dict)
    of_the_machine: list[str] = field(default_factory=list)
    wrong: set[str] = field(default_factory=set)
    costs: dict[str, StoreCost] = field(default_factory=dict)
    tables: dict[str, dict[str, str]] = field(default_factory=dict)
    changes: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    schemas: dict[str, list[str]] = field(default_factory=dict)

    def add(self, pipeline: str, problems: list[str], warnings: list[str]) -> None:
        """Note what was found of a pipeline."""
        self.problems += problems
        self.warnings.setdefault(pipeline, []).extend(warnings)
        if problems:
            self.wrong.add(pipeline)


def check(
    file: Annotated[
        Path | None,
        typer.Argument(help="A pipeline name, its YAML file, alerts.yaml or registries.yaml. Default: all of them."),
    ] = None,
    static: Annotated[
        bool, typer.Option("--static", help="Check the files only; do not start Spark to plan the schema and the transform.")
    ] = False,
    storage: Annotated[
        bool,
        typer.Option(
            "--storage",
            help="Let many writers create the same files in each object store. A store is refused if two of them succeed.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Check pipeline files and expectation files. Each mistake is printed with file, line and field.

    Spark plans the pipelines whose files have no mistake.

    Exit code 1 if there is a mistake. Warnings do not change the exit code.
    """
    from lakebound.control.private_files import open_folders
    from lakebound.settings import load_settings
    from lakebound.spec.partition_warnings import partition_warnings

    settings = load_settings()
    report = _read(file, settings)
    report.problems += _alerts_problems(file, settings)
    if storage or not static:
        report.problems += _warehouse_problems(file, report, settings, with_race=storage)
    report.problems += _registry_problems(file, report, settings, asks=not static)
    report.problems += _alias_problems(report, settings, static=static)
    report.of_the_machine = open_folders(settings) + ([] if static else _channels(file, settings))
    for path, spec in report.specs.items():
        known = _columns_without_spark(spec, settings) if static else {}
        own = [
            *_transform_problems(path, spec, settings),
            *_schema_problems(path, spec, settings),
            *_expectation_problems(spec, settings, known),
        ]
        report.add(spec.pipeline, own, [*_warnings(spec, settings), *partition_warnings(spec, known)])
        _reckon_cost(report, spec, settings)
    if not json:
        _print_problems(report.problems)
    right = {path: spec for path, spec in report.specs.items() if not static and spec.pipeline not in report.wrong}
    if not json:
        _print_unplanned(report, {spec.pipeline for path, spec in report.specs.items() if path not in right}, static=static)
    if right:
        _plan(right, report, settings, quiet=json)
    if json:
        _print_json(report)
    else:
        for line in report.of_the_machine:
            show(f"warning: {line}")
    if file is not None and file.name in _FILES_OF_OPERATORS and not report.problems and not json:
        show(f"{file}: valid")
    raise typer.Exit(1 if report.problems else 0)


def schema(
    write: Annotated[
        Path | None, typer.Option(help=f"Write the schema to this file instead, for example {SCHEMA_FILE}.")
    ] = None,
) -> None:
    """Print the JSON Schema of pipeline files. Editors use it to complete and check them."""
    from lakebound.spec.schema import pipeline_schema

    if write is None:
        typer.echo(pipeline_schema(), nl=False)
    else:
        write.write_text(pipeline_schema())
        say(f"schema: written to {write}")


def _warehouse_problems(file: Path | None, report: _Report, settings: Settings, *, with_race: bool) -> list[str]:
    """Return what is wrong with the stores and the catalogs in which the pipelines' tables lie."""
    from lakebound.inspection.store_check import store_problems

    chosen = None if file is None else {spec.warehouse for spec in report.specs.values()}
    stores = store_problems(settings, chosen, with_race=with_race)
    return stores + _catalog_problems(list(report.specs.values()), settings)


def _registry_problems(file: Path | None, report: _Report, settings: Settings, *, asks: bool) -> list[str]:
    """Return what is wrong with the schema registries: all of them, or those that the pipelines name.

    Spark's plan asks those of a pipeline itself.
    """
    from lakebound.inspection.registry_check import registry_problems
    from lakebound.spec.registries_file import registries_file

    if file is None or file.name == REGISTRIES_FILE:
        return registry_problems(file or registries_file(settings), None, asks=asks)
    sources = (source for spec in report.specs.values() for source in spec.schema_sources.values())
    named = {source.registry for source in sources if source.registry is not None}
    return registry_problems(registries_file(settings), named, asks=False) if named else []


def _alias_problems(report: _Report, settings: Settings, *, static: bool) -> list[str]:
    """Return which of these pipelines write to what another one writes to, under another name of the same server."""
    from lakebound.landing.server_identities import server_identities
    from lakebound.spec.disputes import alias_problems
    from lakebound.spec.load import load_pipelines, path_of
    from lakebound.spec.problem_lines import shown_path

    if static or not any(spec.other_targets for spec in report.specs.values()):
        return []
    others = {path_of(name, settings): spec for name, spec in load_pipelines(settings).specs.items()}
    found = alias_problems({**others, **report.specs}, server_identities([*others.values(), *report.specs.values()]))
    mine = tuple(f"{shown_path(path)}:" for path in report.specs)
    return [line for line in found if line.startswith(mine) and line not in report.problems]


def _read(file: Path | None, settings: Settings) -> _Report:
    """Read the pipelines in question, and what is wrong with them in their files."""
    from lakebound.errors import InvalidSpecError
    from lakebound.spec.load import load_file, load_pipeline, load_pipelines, path_of

    if file is not None and file.name in _FILES_OF_OPERATORS:
        return _Report() if file.is_file() else _Report(problems=[f"{file}: this file does not exist"])
    if file is None:
        loaded = load_pipelines(settings)
        specs = {path_of(name, settings): spec for name, spec in loaded.specs.items()}
        return _Report(specs, loaded.problems)
    report = _Report()
    if file.suffix and not file.is_file():
        return _Report(problems=[f"{file}: this file does not exist"])
    try:
        if file.exists() and file.parent.absolute() != settings.pipelines:
            report.specs[file] = load_file(file, settings)
        else:
            # Where the folder's other files count too: none may name the same table.
            report.specs[path_of(file.stem, settings)] = load_pipeline(file.stem, settings)
    except InvalidSpecError as exc:
        report.problems += exc.problems
    return report


def _alerts_problems(file: Path | None, settings: Settings) -> list[str]:
    """Return what is wrong with the routes of alerts, where all files are asked for or this one."""
    from lakebound.alerts.load import InvalidAlertsError, alerts_file, load_alerts

    if file is not None and file.name != ALERTS_FILE:
        return []
    try:
        load_alerts(file or alerts_file(settings))
    except InvalidAlertsError as exc:
        return exc.problems
    return []


def _channels(file: Path | None, settings: Settings) -> list[str]:
    """Return which channels need a running Airflow, where all files are asked for or that of the channels."""
    from lakebound.alerts.channel_check import channels_that_need_airflow, channels_with_plain_addresses
    from lakebound.alerts.load import InvalidAlertsError, alerts_file, load_alerts

    if file is not None and file.name != ALERTS_FILE:
        return []
    try:
        alerts = load_alerts(file or alerts_file(settings))
        return [*channels_with_plain_addresses(alerts), *channels_that_need_airflow(alerts, settings)]
    except InvalidAlertsError:
        return []


def _catalog_problems(specs: list[PipelineSpec], settings: Settings) -> list[str]:
    """Return what is wrong with the catalogs of the pipelines' warehouses; each is asked once."""
    from lakebound.spec.warehouses_file import warehouses_file
    from lakebound.tables.catalogs import catalog_problems
    from lakebound.tables.places import places_of

    found: list[str] = []
    for name in sorted({spec.warehouse for spec in specs}):
        tables = [table for spec in specs if spec.warehouse == name for table in (*spec.tables, spec.quarantine_table)]
        problems = catalog_problems(places_of(settings, name), tables)
        found += [f"{warehouses_file(settings)}: warehouses.{name}: {problem}" for problem in problems]
    return found


def _transform_problems(path: Path, spec: PipelineSpec, settings: Settings) -> list[str]:
    from lakebound.spec.problem_lines import problem_line
    from lakebound.spec.source import missing_transform
    from lakebound.spec.yaml_source import Mistake, read_yaml

    missing = missing_transform(spec, settings.apps)
    if missing is None:
        return []
    keys = ("transform",)
    return [problem_line(path, Mistake(read_yaml(path).line_of(keys), missing, keys))]


def _schema_problems(path: Path, spec: PipelineSpec, settings: Settings) -> list[str]:
    """Return what files say of the pipeline's schemas."""
    from lakebound.inspection.schema_check import schema_problems
    from lakebound.spec.placed import told

    return [told(problem, spec, path, settings.apps) for problem in schema_problems(spec, settings)]


def _warnings(spec: PipelineSpec, settings: Settings) -> list[str]:
    """Return what is dangerous about the tables' properties, and what is not done where they lie."""
    from lakebound.operations.maintenance.planning_rules import property_warnings
    from lakebound.operations.maintenance.refusals import refused_settings
    from lakebound.spec.real_time import real_time_warnings
    from lakebound.spec.real_time_values import real_time_value_warnings
    from lakebound.tables.places import places_of

    tables = (*spec.tables, spec.quarantine_table)
    properties = [line for table in tables for line in property_warnings(table.id, table.properties, spec.maintenance)]
    places = places_of(settings, spec.warehouse)
    return [
        *properties,
        *real_time_warnings(spec),
        *real_time_value_warnings(spec),
        *refused_settings(tables, spec.maintenance, places),
        *_shared_state_warnings(spec, settings),
    ]


def _shared_state_warnings(spec: PipelineSpec, settings: Settings) -> list[str]:
    """Return what a pipeline asks for that is refused while machines share its state."""
    from lakebound.inspection.validation.expectation_files import expectations_path
    from lakebound.settings import state_address

    path = expectations_path(spec.pipeline, settings)
    if state_address() is None or not path.is_file():
        return []
    return [
        f"{path}: LAKEBOUND_STATE shares the state in an object store, and validation does not work with that: the DAG "
        f"validate__{spec.pipeline} fails at each run. Remove the file, or keep the state in a folder"
    ]


def _reckon_cost(report: _Report, spec: PipelineSpec, settings: Settings) -> None:
    """Note what a pipeline's commits cost, where its tables are in an object store."""
    from lakebound.inspection.store_cost import store_cost
    from lakebound.tables.places import places_of

    cost = store_cost(spec, places_of(settings, spec.warehouse).warehouse)
    if cost is not None:
        report.costs[spec.pipeline] = cost


def _columns_without_spark(spec: PipelineSpec, settings: Settings) -> dict[str, Mapping[str, str]]:
    """Return the columns of the pipeline's tables, with their types, as far as they are known without Spark.

    The tables themselves are read only for expectations, because their libraries take a second to import.
    """
    from lakebound.inspection.validation.expectation_files import columns_without_spark, expectations_path
    from lakebound.inspection.validation.table_columns import existing_columns
    from lakebound.tables.places import places_of

    is_expected = expectations_path(spec.pipeline, settings).is_file()
    existing = existing_columns(spec, places_of(settings, spec.warehouse)) if is_expected else {}
    return columns_without_spark(spec, existing)


def _expectation_problems(spec: PipelineSpec, settings: Settings, known: TableColumns) -> list[str]:
    """Return what is wrong with the pipeline's expectations; of columns only where their tables' are known."""
    from lakebound.inspection.validation.expectation_files import check_expectations

    return check_expectations(spec, settings, known)


def _planned_problems(spec: PipelineSpec, plan: SparkPlan, settings: Settings) -> list[str]:
    """Return what is wrong with the pipeline's expectations, by the columns and conditions as Spark plans them."""
    from lakebound.inspection.validation.expectation_files import check_expectations, condition_problem

    found = check_expectations(spec, settings, plan.columns)
    return found + [condition_problem(spec, settings, keys, what) for keys, what in plan.conditions]


def _plan(chosen: Mapping[Path, PipelineSpec], report: _Report, settings: Settings, *, quiet: bool) -> None:
    """Let Spark plan the pipelines, and say of each what it says, as soon as it says it."""
    from concurrent.futures import ThreadPoolExecutor

    from lakebound.cli.plan_check import check_plans
    from lakebound.landing.real_time_check import look_at_real_time
    from lakebound.landing.spark_command import is_local
    from lakebound.landing.topic_check import look_at_target_topics, look_at_topics
    from lakebound.spec.partition_warnings import partition_warnings
    from lakebound.spec.placed import PlacedProblem, told
    from lakebound.spec.state import cluster_problem
    from lakebound.tables.places import places_of

    files, specs = list(chosen), list(chosen.values())
    say(f"check: Spark plans {_counted(len(specs))} (it takes some seconds to start; --static skips this step)")
    with ThreadPoolExecutor(8) as pool:
        looks = [pool.submit(look_at_topics, spec, places_of(settings, spec.warehouse).read_only()) for spec in specs]
        written = [pool.submit(look_at_target_topics, spec) for spec in specs]
        real_time = [pool.submit(look_at_real_time, spec, settings.spark_master) for spec in specs]
        planned = zip(files, specs, check_plans(specs, settings), looks, written, real_time, strict=True)
        for path, spec, plan, look, written_look, real_time_look in planned:
            known = set(report.problems)
            topics, awaited = look.result()
            refused, told_of_it = real_time_look.result()
            unshared = cluster_problem(spec, local=is_local(settings.spark_master))
            problems = [
                *(PlacedProblem(topic, ("topics",)) for topic in topics),
                *written_look.result(),
                *(PlacedProblem(f"freshness: real_time: {reason}", ("freshness",)) for reason in refused),
                *([] if unshared is None else [PlacedProblem(unshared, ("state",))]),
                *plan.problems,
            ]
            found = [told(problem, spec, path, settings.apps) for problem in problems]
            found += [] if plan.problems else _planned_problems(spec, plan, settings)
            new = [problem for problem in found if problem not in known]
            report.add(spec.pipeline, new, [*awaited, *told_of_it, *partition_warnings(spec, plan.columns)])
            report.tables[spec.pipeline] = plan.tables
            report.changes[spec.pipeline] = plan.changes
            report.schemas[spec.pipeline] = plan.schemas
            if not quiet:
                _print_problems(new)
                _print_pipeline(report, spec.pipeline)


def _print_unplanned(report: _Report, pipelines: Collection[str], *, static: bool) -> None:
    """Print what is known of pipelines that Spark does not plan."""
    for name in (spec.pipeline for spec in report.specs.values() if spec.pipeline in pipelines):
        _print_pipeline(report, name)
        if not static:
            show(f"  more mistakes may follow: Spark has not planned {name} yet")


def _counted(pipelines: int) -> str:
    return "one pipeline" if pipelines == 1 else f"{pipelines} pipelines"


def _print_problems(problems: list[str]) -> None:
    for problem in problems:
        show(problem)


def _print_json(report: _Report) -> None:
    warnings = [line for lines in (*report.warnings.values(), report.of_the_machine) for line in lines]
    found = {"problems": report.problems, "warnings": warnings, "tables": report.tables, "changes": report.changes}
    schemas = {name: lines for name, lines in report.schemas.items() if lines}
    print_json(
        {
            "ok": not report.problems,
            **found,
            "schemas": schemas,
            "costs": {name: _cost(one) for name, one in report.costs.items()},
        }
    )


def _cost(cost: StoreCost) -> dict[str, float | None]:
    return {
        "requests_per_batch": cost.per_batch.total,
        "requests_per_hour": cost.requests_per_hour,
        "dollars_per_month": cost.dollars_per_month,
    }


def _print_pipeline(report: _Report, name: str) -> None:
    """Print what is known of a pipeline besides its problems."""
    if name not in report.wrong:
        show(f"{name}: valid")
    for line in report.warnings[name]:
        show(f"  warning: {line}")
    if name in report.costs:
        show(f"  cost: {report.costs[name].sentence()}")
    for line in report.schemas.get(name, ()):
        show(f"  schema: {line}")
    for table, columns in report.tables.get(name, {}).items() if name not in report.wrong else ():
        show(f"  {table}: {', '.join(columns.splitlines())}")
        for change in report.changes.get(name, {}).get(table, ()):
            show(f"    {change}")
