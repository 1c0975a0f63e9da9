"""The routes of the page. Each asks Airflow's auth manager before it answers.

The id of a table may hold a slash, which servers decode before they look for a route: so it takes the rest of the address.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import FileResponse

from lakebound.control.folder import ControlFolder
from lakebound.control.progress import readable_progress
from lakebound.control.status import known_pipelines
from lakebound.settings import load_settings
from lakebound.spec.load import LoadedPipelines
from lakebound.spec.real_time import REAL_TIME, has_both_ends
from lakebound_airflow.page.access import (
    EditedPipeline,
    SeenPipeline,
    User,
    logged_in,
    may_edit,
    may_trigger,
    paused_dags,
    readable_pipelines,
    sees_any_dag,
)
from lakebound_airflow.page.answers import Data, Fragment
from lakebound_airflow.page.charts.fragment import charts_fragment
from lakebound_airflow.page.charts.periods import DEFAULT_PERIOD, PERIODS, period_named
from lakebound_airflow.page.charts.reading import read_history
from lakebound_airflow.page.charts.sparklines import Sparklines
from lakebound_airflow.page.coverage import coverage_rows, read_ledger
from lakebound_airflow.page.declared import DeclaredPipelines
from lakebound_airflow.page.headers import ask_for_login, set_headers
from lakebound_airflow.page.ledger_fragment import ledger_fragment
from lakebound_airflow.page.overview import overview_of
from lakebound_airflow.page.pipeline_view import dags_of, pipeline_view
from lakebound_airflow.page.quality import read_quality
from lakebound_airflow.page.quality_fragment import quality_fragment
from lakebound_airflow.page.runbook import rendered_runbook, runbook_page
from lakebound_airflow.page.samples_fragment import samples_fragment
from lakebound_airflow.page.state import ingest_dag, read_kept_samples, read_newest_incidents, read_states
from lakebound_airflow.page.table_fragment import table_fragment
from lakebound_airflow.page.table_view import read_table_view, tables_of

STATIC = Path(__file__).parent / "static"
MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript"}


def make_app() -> FastAPI:
    """Return the app; it is mounted at ``navigation.URL_PREFIX``. It has no pages about itself (OpenAPI)."""
    app = FastAPI(title="Lakebound", docs_url=None, redoc_url=None, openapi_url=None, dependencies=[logged_in])
    set_headers(app)
    ask_for_login(app)
    _add_files(app)
    declared = DeclaredPipelines()
    _add_data(app, declared)
    _add_charts(app, declared)
    _add_ledger(app, declared)
    _add_quality(app, declared)
    _add_samples(app, declared)
    _add_table(app, declared)
    return app


def _add_files(app: FastAPI) -> None:
    files = {path.name: path for path in STATIC.iterdir() if path.suffix in MEDIA_TYPES}

    @app.get("/", dependencies=[sees_any_dag])
    def overview_page() -> FileResponse:
        return FileResponse(STATIC / "overview.html", media_type="text/html")

    @app.get("/pipelines/{pipeline}")
    def pipeline_page(pipeline: SeenPipeline) -> FileResponse:
        return FileResponse(STATIC / "pipeline.html", media_type="text/html")

    @app.get("/pipelines/{pipeline}/tables/{table:path}")
    def table_page(pipeline: SeenPipeline, table: str) -> FileResponse:
        return FileResponse(STATIC / "table.html", media_type="text/html")

    @app.get("/static/{name}", dependencies=[sees_any_dag])
    def static_file(name: str) -> FileResponse:
        if name not in files:
            raise HTTPException(404, "There is no such file")
        return FileResponse(files[name], media_type=MEDIA_TYPES[files[name].suffix])

    @app.get("/runbooks/{name}", dependencies=[sees_any_dag])
    def runbook(name: str) -> Fragment:
        fragment = rendered_runbook(name)
        if fragment is None:
            raise HTTPException(404, "There is no such runbook in this installation")
        return Fragment(runbook_page(name, fragment))


def _add_data(app: FastAPI, declared: DeclaredPipelines) -> None:
    @app.get("/api/overview", dependencies=[sees_any_dag])
    def overview(user: User) -> Data:
        settings, now = load_settings(), time.time()
        loaded = declared.read(settings)
        names = readable_pipelines(known_pipelines(settings, loaded), user)
        states, problems = read_states(names, settings, loaded, paused_dags([ingest_dag(name) for name in names]), now)
        return Data(overview_of(states, [*_mistakes(loaded, names), *problems], now).model_dump(mode="json"))

    @app.get("/api/pipelines/{pipeline}")
    def one_pipeline(pipeline: SeenPipeline, request: Request, user: User) -> Data:
        settings, now = load_settings(), time.time()
        loaded = declared.read(settings)
        if pipeline not in known_pipelines(settings, loaded):
            raise HTTPException(404, "There is no such pipeline")
        states, problems = read_states([pipeline], settings, loaded, paused_dags([ingest_dag(pipeline)]), now)
        incidents, unreadable = read_newest_incidents(pipeline, settings)
        allowed = [dag_id for dag_id in dags_of(pipeline) if may_trigger(dag_id, request, user)]
        told = [*_mistakes(loaded, {pipeline}), *problems, *unreadable]
        sees_values = may_edit(pipeline, request, user)
        return Data(pipeline_view(states[0], incidents, told, allowed, now, sees_values=sees_values))


def _add_charts(app: FastAPI, declared: DeclaredPipelines) -> None:
    sparklines = Sparklines()

    @app.get("/api/freshness", dependencies=[sees_any_dag])
    def freshness(user: User) -> Data:
        settings = load_settings()
        names = readable_pipelines(known_pipelines(settings, declared.read(settings)), user)
        lines = sparklines.read(settings.home, sorted(names), time.time())
        return Data({name: line.model_dump() for name, line in lines.items()})

    @app.get("/api/pipelines/{pipeline}/charts")
    def charts(pipeline: SeenPipeline, period: str = DEFAULT_PERIOD) -> Fragment:
        settings, now, chosen = load_settings(), time.time(), period_named(period)
        if pipeline not in known_pipelines(settings, declared.read(settings)):
            raise HTTPException(404, "There is no such pipeline")
        if chosen is None:
            raise HTTPException(400, f"period is one of: {', '.join(one.name for one in PERIODS)}")
        return Fragment(charts_fragment(read_history(ControlFolder(settings.home, pipeline), chosen, now), chosen, now))


def _add_ledger(app: FastAPI, declared: DeclaredPipelines) -> None:
    @app.get("/api/pipelines/{pipeline}/ledger")
    def ledger(pipeline: SeenPipeline) -> Fragment:
        settings = load_settings()
        if pipeline not in known_pipelines(settings, declared.read(settings)):
            raise HTTPException(404, "There is no such pipeline")
        control = ControlFolder(settings.home, pipeline)
        found, problems = read_ledger(control)
        return Fragment(ledger_fragment(coverage_rows(found, readable_progress(control)), found, problems))


def _add_quality(app: FastAPI, declared: DeclaredPipelines) -> None:
    @app.get("/api/pipelines/{pipeline}/quality")
    def quality(pipeline: SeenPipeline) -> Fragment:
        settings = load_settings()
        if pipeline not in known_pipelines(settings, declared.read(settings)):
            raise HTTPException(404, "There is no such pipeline")
        return Fragment(quality_fragment(read_quality(ControlFolder(settings.home, pipeline), time.time())))


def _add_samples(app: FastAPI, declared: DeclaredPipelines) -> None:
    @app.get("/api/pipelines/{pipeline}/samples")
    def samples(pipeline: EditedPipeline) -> Fragment:
        settings = load_settings()
        loaded = declared.read(settings)
        if pipeline not in known_pipelines(settings, loaded):
            raise HTTPException(404, "There is no such pipeline")
        spec = loaded.specs.get(pipeline)
        kept = spec.quarantine_samples if spec is not None else 0
        found, problems = read_kept_samples(ControlFolder(settings.home, pipeline), kept, time.time())
        is_kept = spec is None or spec.freshness != REAL_TIME or has_both_ends(spec, REAL_TIME)
        topic = None if spec is None or is_kept else spec.quarantine_topic
        return Fragment(samples_fragment(found, kept, problems, topic=topic))


def _add_table(app: FastAPI, declared: DeclaredPipelines) -> None:
    @app.get("/api/pipelines/{pipeline}/tables/{table:path}")
    def table_history(pipeline: SeenPipeline, table: str) -> Fragment:
        settings = load_settings()
        loaded, control = declared.read(settings), ControlFolder(settings.home, pipeline)
        spec = loaded.specs.get(pipeline)
        if pipeline not in known_pipelines(settings, loaded) or table not in tables_of(spec, control):
            raise HTTPException(404, "There is no such table")
        return Fragment(table_fragment(read_table_view(control, table, spec), time.time()))


def _mistakes(loaded: LoadedPipelines, readable: set[str]) -> Sequence[str]:
    """Return the mistakes in the files of the pipelines that the viewer sees, and of the folder."""
    return [line for path, lines in loaded.mistakes.items() if path.stem in readable or not path.suffix for line in lines]
