"""The operator behind ``prove__<pipeline>``: asks ledger, tables and Kafka whether every readable offset was landed once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from lakebound.errors import LakeboundError
from lakebound.settings import load_settings
from lakebound.tables.places import places_of
from lakebound_airflow.pipelines import control_of, spec_of

if TYPE_CHECKING:
    from lakebound.inspection.proof.result import Proof

Context = Mapping[str, Any]


class NotProvedError(LakeboundError):
    """The proof does not hold."""

    def __init__(self, proof: Proof) -> None:
        problems = [f"{table.table}: {problem}" for table in proof.tables for problem in table.problems]
        super().__init__("\n".join([proof.sentence, *problems]))


class ProveOperator(BaseOperator):
    """Proves one pipeline; XCom: the proof in short. ``params.deep`` also checks rows, not entries only.

    Args:
        pipeline: Its name.
    """

    template_fields = ("pipeline",)
    ui_color = "#dae8fc"

    def __init__(self, *, pipeline: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline

    def execute(self, context: Context) -> dict[str, Any]:
        """Prove it.

        Raises:
            NotProvedError: The proof does not hold; what is missing or doubled.
        """
        # Reading tables loads Arrow, Delta and Iceberg: not while DAGs are parsed.
        from lakebound.inspection.proof.collect import prove
        from lakebound.inspection.proof.record import record_proof

        settings = load_settings()
        spec = spec_of(self.pipeline, settings)
        proof = prove(spec, places_of(settings, spec.warehouse), deep=bool(context["params"].get("deep")))
        record_proof(control_of(self.pipeline, settings), proof)
        if not proof.ok:
            raise NotProvedError(proof)
        self.log.info(proof.sentence)
        return {
            "sentence": proof.sentence,
            "level": proof.level,
            "records": {table.table: table.records for table in proof.tables},
            "since": {table.table: table.scope for table in proof.tables if table.is_partial},
            "missing": proof.missing,
            "duplicated": proof.duplicated,
        }
