"""Sends a test alert by the real route and prints a JSON object.

``python -m lakebound_airflow.notifications.alert_test PIPELINE [CHANNEL]``.

A process of its own for ``lakebound alerts --test``, as the core does not import Airflow. It sees the connections that Airflow
sees: ``AIRFLOW_CONN_…`` in the environment, secrets backends, and the database of the Airflow at ``AIRFLOW_HOME``; and the
files of connections that ``lakebound watch`` reads.
"""

from __future__ import annotations

import json
import sys
import time

from lakebound.alerts.load import alerts_file, load_alerts
from lakebound.alerts.outbox import NotDeliveredError
from lakebound.alerts.round import message_of_test
from lakebound.alerts.routes import connections_of
from lakebound.settings import load_settings


def main(arguments: list[str]) -> int:
    """Send it by every channel, or by one; return the exit code."""
    from lakebound_airflow.notifications.channels import sender
    from lakebound_airflow.notifications.connection_files import ConnectionFiles

    alerts = load_alerts(alerts_file(load_settings()))
    for problem in ConnectionFiles().read(connections_of(alerts)):
        print(problem, file=sys.stderr)
    message = message_of_test(arguments[0], time.time())
    send = sender(alerts.runbooks)
    found: dict[str, str | None] = {}
    for name, channel in alerts.channels.items():
        if len(arguments) > 1 and name != arguments[1]:
            continue
        try:
            send(channel, message)
            found[name] = None
        except NotDeliveredError as exc:
            found[name] = str(exc)
    print(json.dumps({"id": message.id, "channels": found}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
