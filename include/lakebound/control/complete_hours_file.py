"""Where the complete hours of a pipeline stand: written by its application, read by Airflow."""

from __future__ import annotations

from lakebound.control.complete_hours import CompleteHours
from lakebound.control.folder import ControlFolder, read_json, write_json


def write_complete_hours(control: ControlFolder, hours: CompleteHours) -> None:
    """Replace the file; after a power cut it is there."""
    write_json(control.complete_hours, hours.model_dump(mode="json", exclude_defaults=True), durable=True)


def read_complete_hours(control: ControlFolder) -> CompleteHours | None:
    """Return the state, or None where there is none.

    Raises:
        ValueError: The file cannot be read.
    """
    body = read_json(control.complete_hours, None)
    return None if body is None else CompleteHours.model_validate(body)
