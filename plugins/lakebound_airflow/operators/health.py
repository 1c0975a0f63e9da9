"""The operator behind ``checkpoint_health``: has the doctor look at one pipeline, and fails when a person is needed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from lakebound.errors import LakeboundError
from lakebound.settings import Settings, load_settings
from lakebound_airflow.pipelines import control_of, spec_of

if TYPE_CHECKING:
    from lakebound.inspection.doctor.diagnosis import Diagnosis
    from lakebound.spec.pipeline import PipelineSpec

HEALTH_INTERVAL = timedelta(minutes=5)
DIAGNOSIS_KEY = "diagnosis"

Context = Mapping[str, Any]


class PipelineUnwellError(LakeboundError):
    """What is wrong is not repaired by itself."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        asking = [finding for finding in diagnosis.findings if finding.verdict in ("needs_approval", "needs_person")]
        lines = [f"{finding.sentence} (runbook include/runbooks/{finding.runbook}.md)" for finding in asking]
        super().__init__(f"{diagnosis.subject}: {diagnosis.verdict.replace('_', ' ')}\n" + "\n".join(lines))


class HealthOperator(BaseOperator):
    """Examines one pipeline; XCom ``diagnosis``: the whole diagnosis, also when the task fails.

    What is wrong becomes findings of the source ``doctor``, of which alerts are made.

    Args:
        pipeline: Its name.
    """

    template_fields = ("pipeline",)
    ui_color = "#f8cecc"

    def __init__(self, *, pipeline: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline

    def execute(self, context: Context) -> str:
        """Examine it, and return the verdict.

        Raises:
            PipelineUnwellError: A person must approve or decide something.
        """
        # Reading tables loads Arrow, Delta and Iceberg: not while DAGs are parsed.
        from lakebound.inspection.doctor.examine import examine_pipeline

        settings = load_settings()
        spec = spec_of(self.pipeline, settings)
        diagnosis = examine_pipeline(spec, settings)
        context["ti"].xcom_push(key=DIAGNOSIS_KEY, value=diagnosis.model_dump(mode="json"))
        for finding in diagnosis.findings:
            self.log.info("%s: %s: %s", finding.verdict, finding.rule, finding.sentence)
        self._write_findings(spec, settings, diagnosis)
        if diagnosis.verdict in ("needs_approval", "needs_person"):
            raise PipelineUnwellError(diagnosis)
        self.log.info("%s is %s", self.pipeline, diagnosis.verdict)
        return diagnosis.verdict

    def _write_findings(self, spec: PipelineSpec, settings: Settings, diagnosis: Diagnosis) -> None:
        """Write down what is wrong. The DAG ``alerts`` tells it; a state folder that cannot be written hides no verdict."""
        from lakebound.alerts.doctor_look import write_looks

        try:
            write_looks(spec, control_of(self.pipeline, settings), settings, diagnosis)
        except OSError as exc:
            self.log.error("the findings could not be written: %s", exc)
