"""The routes of the page. Each asks Airflow's auth manager before it answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import FileResponse, HTMLResponse

from lakebound.control.folder import ControlFolder
from lakebound.control.progress import readable_progress
from lakebound.control.status import known_pipelines
from lakebound.settings import load_settings
from lakebound.spec.load import LoadedPipelines
from lakebound_airflow.page.access import (
    SeenPipeline,
    User,
    logged_in,
    may_trigger,
    paused_dags,
    readable_pipelines,
    sees_any_dag,
)
from lakebound_airflow.page.charts.fragment import charts_fragment
from lakebound_airflow.page.charts.periods import DEFAULT_PERIOD, PERIODS, period_named
from lakebound_airflow.page.charts.reading import read_history
from lakebound_airflow.page.charts.sparklines import Sparkline, Sparklines
from lakebound_airflow.page.coverage import coverage_rows, read_ledger
from lakebound_airflow.page.declared import DeclaredPipelines
from lakebound_airflow.page.headers import set_headers
from lakebound_airflow.page.ledger_fragment import ledger_fragment
from lakebound_airflow.page.overview import overview_of
from lakebound_airflow.page.pipeline_view import dags_of, pipeline_view
from lakebound_airflow.page.quality import read_quality
from lakebound_airflow.page.quality_fragment import quality_fragment
from lakebound_airflow.page.runbook import rendered_runbook, runbook_page
from lakebound_airflow.page.state import ingest_dag, read_newest_incidents, read_states

STATIC = Path(__file__).parent / "static"
MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript"}


def make_app() -> FastAPI:
    """Return the app; it is mounted at ``navigation.URL_PREFIX``. It has no pages about itself (OpenAPI)."""
    app = FastAPI(title="Lakebound", docs_url=None, redoc_url=None, openapi_url=None, dependencies=[logged_in])
    set_headers(app)
    _add_files(app)
    declared = DeclaredPipelines()
    _add_data(app, declared)
    _add_charts(app, declared)
    _add_ledger(app, declared)
    _add_quality(app, declared)
    return app


def _add_files(app: FastAPI) -> None:
    files = {path.name: path for path in STATIC.iterdir() if path.suffix in MEDIA_TYPES}

    @app.get("/", dependencies=[sees_any_dag])
    def overview_page() -> FileResponse:
        return FileResponse(STATIC / "overview.html", media_type="text/html")

    @app.get("/pipelines/{pipeline}")
    def pipeline_page(pipeline: SeenPipeline) -> FileResponse:
        return FileResponse(STATIC / "pipeline.html", media_type="text/html")

    @app.get("/static/{name}", dependencies=[sees_any_dag])
    def static_file(name: str) -> FileResponse:
        if name not in files:
            raise HTTPException(404, "There is no such file")
        return FileResponse(files[name], media_type=MEDIA_TYPES[files[name].suffix])

    @app.get("/runbooks/{name}", dependencies=[sees_any_dag])
    def runbook(name: str) -> HTMLResponse:
        fragment = rendered_runbook(name)
        if fragment is None:
            raise HTTPException(404, "There is no such runbook in this installation")
        return HTMLResponse(runbook_page(name, fragment))


def _add_data(app: FastAPI, declared: DeclaredPipelines) -> None:
    @app.get("/api/overview", dependencies=[sees_any_dag])
    def overview(user: User) -> dict[str, Any]:
        settings, now = load_settings(), time.time()
        loaded = declared.read(settings)
        names = readable_pipelines(known_pipelines(settings, loaded), user)
        states, problems = read_states(names, settings, loaded, paused_dags([ingest_dag(name) for name in names]), now)
        return overview_of(states, [*_mistakes(loaded, names), *problems], now).model_dump(mode="json")

    @app.get("/api/pipelines/{pipeline}")
    def one_pipeline(pipeline: SeenPipeline, request: Request, user: User) -> dict[str, Any]:
        settings, now = load_settings(), time.time()
        loaded = declared.read(settings)
        if pipeline not in known_pipelines(settings, loaded):
            raise HTTPException(404, "There is no such pipeline")
        states, problems = read_states([pipeline], settings, loaded, paused_dags([ingest_dag(pipeline)]), now)
        incidents, unreadable = read_newest_incidents(pipeline, settings)
        allowed = [dag_id for dag_id in dags_of(pipeline) if may_trigger(dag_id, request, user)]
        told = [*_mistakes(loaded, {pipeline}), *problems, *unreadable]
        return pipeline_view(states[0], incidents, told, allowed, now)


def _add_charts(app: FastAPI, declared: DeclaredPipelines) -> None:
    sparklines = Sparklines()

    @app.get("/api/freshness", dependencies=[sees_any_dag])
    def freshness(user: User) -> dict[str, Sparkline]:
        settings = load_settings()
        names = readable_pipelines(known_pipelines(settings, declared.read(settings)), user)
        return sparklines.read(settings.home, sorted(names), time.time())

    @app.get("/api/pipelines/{pipeline}/charts")
    def charts(pipeline: SeenPipeline, period: str = DEFAULT_PERIOD) -> HTMLResponse:
        settings, now, chosen = load_settings(), time.time(), period_named(period)
        if pipeline not in known_pipelines(settings, declared.read(settings)):
            raise HTTPException(404, "There is no such pipeline")
        if chosen is None:
            raise HTTPException(400, f"period is one of: {', '.join(one.name for one in PERIODS)}")
        return HTMLResponse(charts_fragment(read_history(ControlFolder(settings.home, pipeline), chosen, now), chosen, now))


def _add_ledger(app: FastAPI, declared: DeclaredPipelines) -> None:
    @app.get("/api/pipelines/{pipeline}/ledger")
    def ledger(pipeline: SeenPipeline) -> HTMLResponse:
        settings = load_settings()
        if pipeline not in known_pipelines(settings, declared.read(settings)):
            raise HTTPException(404, "There is no such pipeline")
        control = ControlFolder(settings.home, pipeline)
        found, problems = read_ledger(control)
        return HTMLResponse(ledger_fragment(coverage_rows(found, readable_progress(control)), found, problems))


def _add_quality(app: FastAPI, declared: DeclaredPipelines) -> None:
    @app.get("/api/pipelines/{pipeline}/quality")
    def quality(pipeline: SeenPipeline) -> HTMLResponse:
        settings = load_settings()
        if pipeline not in known_pipelines(settings, declared.read(settings)):
            raise HTTPException(404, "There is no such pipeline")
        return HTMLResponse(quality_fragment(read_quality(ControlFolder(settings.home, pipeline), time.time())))


def _mistakes(loaded: LoadedPipelines, readable: set[str]) -> Sequence[str]:
    """Return the mistakes in the files of the pipelines that the viewer sees, and of the folder."""
    return [line for path, lines in loaded.mistakes.items() if path.stem in readable or not path.suffix for line in lines]
