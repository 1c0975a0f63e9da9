"""What one application is told: the whole spec as one argument, and never a secret."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from lakebound.control.desired import Desired, RunBound
from lakebound.control.folder import ControlFolder
from lakebound.control.submission import BackendName, Owner, Submission
from lakebound.formats.schemas import PartOfRecord, SchemaText
from lakebound.frozen import Frozen
from lakebound.landing.row_source import row_source
from lakebound.landing.schema_files import read_schema_files
from lakebound.ledger.sources import Source
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.real_time import batches_end
from lakebound.spec.registries_file import find_registry
from lakebound.spec.registry import RegistrySpec
from lakebound.spec.source import source_hash
from lakebound.tables.places import Places, places_of


class RunSpec(Frozen):
    """One application's orders."""

    spec: PipelineSpec
    places: Places
    app_id: str
    generation: int = 0
    freshness: str
    until: RunBound | None = None
    source_hash: str = ""
    source: Source = Source()
    schema_files: dict[PartOfRecord, SchemaText] = Field(default_factory=dict)
    registries: dict[str, RegistrySpec] = Field(default_factory=dict)
    trace: bool = False

    @property
    def secret_variables(self) -> tuple[str, ...]:
        """The environment variables with secrets of the pipeline's connection, reference data, stores, warehouse and state."""
        of_stores = (ref.env for ref in self.spec.store_secrets.values() if ref.env)
        of_state = self.places.state.secret_variables if self.places.state is not None else ()
        return (*self.spec.connection.secret_variables, *of_stores, *of_state, *self.planning_secrets)

    @property
    def own_variables(self) -> tuple[str, ...]:
        """The variables by which the machine's own credentials are found, where the warehouse or the state goes by these."""
        of_state = self.places.state.own_variables if self.places.state is not None else ()
        return tuple(dict.fromkeys((*self.places.warehouse.own_variables, *of_state)))

    @property
    def planning_secrets(self) -> tuple[str, ...]:
        """Those that planning needs, which reads references, schemas and tables, and no records."""
        of_references = (ref.env for ref in self.spec.reference_secrets.values() if ref.env)
        of_registries = (variable for one in self.registries.values() for variable in one.secret_variables)
        return (*of_references, *of_registries, *self.places.warehouse.secret_variables)

    def submission(self, backend: BackendName, owner: Owner | None, **more: Any) -> Submission:
        """Return the record of an application with these orders that is about to be submitted from this machine.

        Args:
            backend: What runs it.
            owner: The try of an Airflow task that has it in its care.
            **more: Further fields of the record.
        """
        return Submission(
            app_id=self.app_id,
            backend=backend,
            generation=self.generation,
            source_hash=self.source_hash,
            owner=owner,
            **more,
        )

    @property
    def of_batches(self) -> RunSpec:
        """The orders of the query in batches beside one in real time."""
        spec = batches_end(self.spec)
        return self.model_copy(update={"spec": spec, "freshness": spec.freshness})

    @property
    def control(self) -> ControlFolder:
        """The pipeline's folder."""
        return ControlFolder(self.places.home, self.spec.pipeline, self.places.state)


def make_run_spec(
    spec: PipelineSpec, settings: Settings, desired: Desired, app_id: str, *, reads_records: bool = True
) -> RunSpec:
    """Return the orders for an application that is about to be submitted.

    Args:
        spec: Pipeline that the application works for.
        settings: This machine's settings; the orders repeat its places.
        desired: The desired state that the application obeys: its generation, bound and, where it names one, freshness.
        app_id: Id of the application that will run.
        reads_records: Whether it decodes records, and so needs their schemas.

    Raises:
        SchemaFileError: A file with their schema cannot be read.
    """
    schemas = read_schema_files(spec, settings) if reads_records else {}
    return RunSpec(
        spec=spec,
        places=places_of(settings, spec.warehouse),
        app_id=app_id,
        generation=desired.generation,
        freshness=desired.freshness or spec.freshness,
        until=desired.until,
        source_hash=source_hash(spec, settings.apps),
        source=row_source(spec, settings.apps, schemas),
        schema_files=schemas,
        registries=_registries(spec, settings) if reads_records else {},
    )


def _registries(spec: PipelineSpec, settings: Settings) -> dict[str, RegistrySpec]:
    named = {one.registry for one in spec.schema_sources.values() if one.registry is not None}
    return {name: find_registry(name, settings) for name in sorted(named)}
