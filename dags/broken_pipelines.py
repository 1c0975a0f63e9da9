"""Shows mistakes in a pipeline's YAML as an import error in Airflow. The DAGs of the other pipelines still load."""

from __future__ import annotations

from lakebound.errors import InvalidSpecError
from lakebound_airflow.pipelines import problems

# Airflow reads a file only if it mentions a DAG.
if found := problems():
    raise InvalidSpecError(found)
