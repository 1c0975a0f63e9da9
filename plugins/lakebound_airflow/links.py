"""Links from a task to what it has in its care."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperatorLink

from lakebound.control.progress import readable_progress
from lakebound.control.submission import read_submission
from lakebound.settings import load_settings
from lakebound_airflow.pipelines import control_of

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class SparkUiLink(BaseOperatorLink):
    """The Spark UI of the application; shown while the task is deferred, because it is worked out as the task defers."""

    name = "Spark UI"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Return the address, or an empty text where none is known."""
        control = control_of(str(getattr(operator, "pipeline", "")), load_settings())
        submission: Any = read_submission(control)
        progress: Any = readable_progress(control)
        if submission is None:
            return ""
        if progress is not None and progress.app_id == submission.app_id and progress.spark_ui:
            return str(progress.spark_ui)
        return submission.spark_ui or ""
