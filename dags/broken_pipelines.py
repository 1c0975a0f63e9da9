"""Makes Airflow show what is wrong with a pipeline's YAML as an import error; the other pipelines' DAGs load all the same."""

from __future__ import annotations

from lakebound.errors import InvalidSpecError
from lakebound_airflow.pipelines import problems

# Airflow reads a file only if it mentions a DAG.
if found := problems():
    raise InvalidSpecError(found)
