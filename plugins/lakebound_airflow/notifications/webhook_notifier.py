"""A message as JSON to a webhook, by Airflow's HTTP notifier."""

from __future__ import annotations

from airflow.providers.http.notifications.http import HttpNotifier

from lakebound.alerts.model import Message
from lakebound.alerts.routes import WebhookSpec
from lakebound.alerts.wording import ID_HEADER, Links, body_of

TIMEOUT_SECONDS = 10.0


def webhook_notifier(spec: WebhookSpec, message: Message, links: Links) -> HttpNotifier:
    """Return what sends the message.

    Args:
        spec: The channel: Airflow connection and path.
        message: What is said, of which pipeline.
        links: Addresses of Airflow's UI and of the runbooks, for the text.
    """
    return HttpNotifier(
        http_conn_id=spec.connection,
        endpoint=spec.endpoint,
        json=body_of(message, links),
        headers={ID_HEADER: message.id},
        extra_options={"timeout": TIMEOUT_SECONDS},
    )
