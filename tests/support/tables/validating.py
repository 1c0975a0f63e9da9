"""A validation run without Spark: rows are read by pyarrow, and a bad one is one whose id is a multiple of seven.

Run as a program it is a validation in a process of its own: ``python -m tests.support.tables.validating HOME MOMENT
ON_FAILURE``, which waits at the moment (``evaluating``, ``copied`` or ``never``) until it is killed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow.parquet as pq

from lakebound.control.findings import Severity
from lakebound.inspection.validation.expectations import ExpectationFile
from lakebound.inspection.validation.history import ValidationRunsError
from lakebound.inspection.validation.run import Batch, run_validation
from lakebound.inspection.validation.verdict import ExpectationResult, RangeVerdict, ValidationReport
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.places import Places
from tests.support.tables.local_tables import places

LABEL = "no sevens"
DIVISOR = 7


def spec(*formats: str) -> PipelineSpec:
    """Return a pipeline whose tables ``tests.support.tables.local_tables`` makes."""
    return PipelineSpec.model_validate(
        {
            "pipeline": "orders",
            "topics": ["orders"],
            "connection": {"bootstrap_servers": "127.0.0.1:1"},
            "value": {"format": "bytes"},
            "freshness": "500ms",
            "tables": [{"format": name, "name": "shop.orders"} for name in formats or ("delta", "iceberg")],
        }
    )


def expectations(**changes: object) -> ExpectationFile:
    """Return what is expected of them."""
    rule = {"expect": "rows_to_satisfy", "name": LABEL, "rule": "id % 7 <> 0", "severity": "critical"}
    return ExpectationFile.model_validate({"pipeline": "orders", "expectations": [rule], **changes})


class ArrowEvaluator:
    """Judges ids; counts what it was asked to copy, by claim."""

    def __init__(self, reach: Callable[[str], None] = lambda moment: None) -> None:
        self.copied: dict[str, int] = {}
        self.versions: list[str] = []
        self._reach = reach

    def evaluate(self, batch: Batch) -> RangeVerdict:
        self._reach("evaluating")
        ids = [one for file in batch.files for one in pq.read_table(file.path.path, columns=["id"])["id"].to_pylist()]
        bad = [one for one in ids if one % DIVISOR == 0]
        self.versions += [step.version for step in batch.due.landings]
        result = ExpectationResult(
            label=LABEL,
            severity=Severity.CRITICAL,
            passed=not bad,
            checked=len(ids),
            unexpected=len(bad),
            samples=tuple(f"orders/0:{one}" for one in bad[:5]),
            is_of_rows=True,
        )
        return RangeVerdict(results=(result,), rows=len(ids), missing_rows=batch.missing_rows)

    def copy_failing(self, batch: Batch, failures: Sequence[ExpectationResult]) -> int:
        rows = sum(one.unexpected or 0 for one in failures)
        self.copied.setdefault(batch.claim, rows)
        self._reach("copied")
        return rows


def validate(at: Places, evaluator: ArrowEvaluator | None = None, *formats: str, **changes: object) -> ValidationReport:
    """Run it in this process."""
    run_id = f"run-{time.time_ns()}"
    return run_validation(spec(*formats), at, expectations(**changes), evaluator or ArrowEvaluator(), run_id=run_id)


def main(home: str, moment: str, on_failure: str) -> int:
    """Run it, and wait at the moment to be killed; exit code 3: another run is under way."""

    def reach(reached: str) -> None:
        if reached == moment:
            (Path(home) / f"at-{moment}").touch()
            time.sleep(600)

    try:
        report = validate(places(Path(home)), ArrowEvaluator(reach), on_failure=on_failure)
    except ValidationRunsError:
        return 3
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
