"""Reads ``alerts.yaml``, and says of each mistake in which file, line and field it is."""

from __future__ import annotations

from pathlib import Path

from lakebound.alerts.routes import DEFAULT_ALERTS, AlertsSpec
from lakebound.errors import LakeboundError
from lakebound.settings import Settings
from lakebound.spec.yaml_model import read_model

FILE = "alerts.yaml"


class InvalidAlertsError(LakeboundError):
    """``alerts.yaml`` is wrong.

    Attributes:
        problems: One line per mistake, each ``FILE:LINE: FIELD: what is wrong``.
    """

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


def alerts_file(settings: Settings) -> Path:
    """Return where the file is, or would be: beside the folder of pipelines."""
    return settings.pipelines.parent / FILE


def load_alerts(path: Path) -> AlertsSpec:
    """Return what the file says; the default where there is no file.

    Raises:
        InvalidAlertsError: It is wrong.
    """
    if not path.exists() and not path.is_symlink():
        return DEFAULT_ALERTS
    found, problems = read_model(path, AlertsSpec, "channels, routes, policy, disks, runbooks, heartbeat")
    if found is None:
        raise InvalidAlertsError(problems)
    return found


def load_alerts_or_default(settings: Settings) -> tuple[AlertsSpec, list[str]]:
    """Return what the file says, and no mistakes; where it is wrong the default, by which its mistakes are told."""
    try:
        return load_alerts(alerts_file(settings)), []
    except InvalidAlertsError as exc:
        return DEFAULT_ALERTS, exc.problems
