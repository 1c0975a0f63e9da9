"""Sends a test message by the real channels: in a process of its own, as only Airflow's notifiers know its connections."""

from __future__ import annotations

import contextlib
import subprocess
import sys

from lakebound.alerts.airflow_process import SEES_DATABASE, airflow_environment
from lakebound.alerts.load import alerts_file, load_alerts
from lakebound.errors import LakeboundError
from lakebound.frozen import Frozen
from lakebound.settings import Settings

_MODULE = "lakebound_airflow.notifications.alert_test"
_TIMEOUT_SECONDS = 180.0


class TryOut(Frozen):
    """How a test went: per channel why it was not delivered, None where it was."""

    id: str
    channels: dict[str, str | None]


class UnknownChannelError(LakeboundError):
    """``alerts.yaml`` has no such channel."""

    def __init__(self, channel: str, known: list[str]) -> None:
        super().__init__(f"alerts.yaml has no channel {channel!r}; its channels are: {', '.join(sorted(known))}")


class CannotTestError(LakeboundError):
    """Airflow's notifiers cannot be run from here."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the test message could not be sent: {reason}. It needs Airflow's packages and connections: run this command "
            f"where Airflow runs, with AIRFLOW_HOME and AIRFLOW_CONN_… in the environment"
        )


def send_test(settings: Settings, pipeline: str, channel: str | None) -> TryOut:
    """Send it, and return how each channel took it.

    Args:
        settings: This machine's settings; they say where ``alerts.yaml`` is.
        pipeline: Name of the pipeline that the test message names.
        channel: The one channel of ``alerts.yaml`` that gets the message; None sends it to all of them.

    Raises:
        InvalidAlertsError: ``alerts.yaml`` is wrong.
        UnknownChannelError: It has no such channel.
        CannotTestError: There is no Airflow here.
    """
    alerts = load_alerts(alerts_file(settings))
    if channel is not None and channel not in alerts.channels:
        raise UnknownChannelError(channel, list(alerts.channels))
    command = [sys.executable, "-m", _MODULE, pipeline, *([channel] if channel else [])]
    environment = {**airflow_environment(settings), **SEES_DATABASE}
    try:
        answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise CannotTestError(f"no answer within {_TIMEOUT_SECONDS:.0f} s") from None
    found = _answer_in(answer.stdout)
    if found is None:
        # The class of the error alone: its text may hold an address.
        last = next((line for line in reversed(answer.stderr.splitlines()) if line.strip()), "it said nothing")
        raise CannotTestError(last.partition(":")[0])
    return found


def _answer_in(text: str) -> TryOut | None:
    """Return the answer among what Airflow may log around it, to its standard output, too."""
    for line in reversed(text.splitlines()):
        with contextlib.suppress(ValueError):
            return TryOut.model_validate_json(line)
    return None
