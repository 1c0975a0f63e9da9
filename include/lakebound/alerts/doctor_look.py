"""The doctor's look at pipelines, written down as findings. As a program it looks at several, one after the other.

``python -m lakebound.alerts.doctor_look SECONDS PIPELINE...`` is a process of its own for ``lakebound watch``. A library that
waits for a broker or a disk cannot be interrupted from Python, so the kernel ends the process (SIGALRM) when one look takes
longer than SECONDS. It prints a line of JSON for each pipeline that it has dealt with.
"""

from __future__ import annotations

import json
import signal
import sys
import time

from lakebound.alerts.code_look import look_at_code
from lakebound.alerts.doctor_findings import SOURCE, doctor_findings
from lakebound.alerts.field_look import look_at_fields
from lakebound.control.findings import found_before, read_source, write_findings
from lakebound.control.folder import ControlFolder
from lakebound.inspection.doctor.diagnosis import Diagnosis
from lakebound.inspection.doctor.examine import examine_pipeline
from lakebound.redaction import NOT_SHOWN, redacted
from lakebound.settings import Settings, load_settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.declared import owned_pipeline

_MOST_CHARACTERS = 300
"""Of a problem: all that one process says must fit into a pipe that nobody empties before it ends."""


def write_diagnosis(control: ControlFolder, diagnosis: Diagnosis) -> None:
    """Write down what a diagnosis found wrong, each finding with the time from which it is known.

    Raises:
        OSError: The state folder cannot be written.
    """
    found = doctor_findings(diagnosis, time.time())
    write_findings(control, SOURCE, found_before(read_source(control, SOURCE), found))


def write_looks(spec: PipelineSpec, control: ControlFolder, settings: Settings, diagnosis: Diagnosis) -> None:
    """Write down what a diagnosis found wrong, and what the looks find that are made beside it.

    Raises:
        OSError: The state folder cannot be written.
    """
    write_diagnosis(control, diagnosis)
    look_at_fields(spec, control, diagnosis)
    look_at_code(spec, control, settings)


def main(arguments: list[str]) -> int:
    """Look at each pipeline that is named after the number of seconds that one look may take; return the exit code."""
    seconds, *pipelines = arguments
    settings = load_settings()
    for pipeline in pipelines:
        signal.setitimer(signal.ITIMER_REAL, float(seconds))
        print(json.dumps({"pipeline": pipeline, "problem": _look(pipeline, settings)}), flush=True)
    return 0


def _look(pipeline: str, settings: Settings) -> str | None:
    """Look at one; return why that was not possible."""
    try:
        spec = owned_pipeline(pipeline, settings)
        control, diagnosis = ControlFolder(settings.home, pipeline), examine_pipeline(spec, settings)
        write_looks(spec, control, settings, diagnosis)
    except Exception as exc:
        return redacted(exc, NOT_SHOWN)[:_MOST_CHARACTERS]
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
