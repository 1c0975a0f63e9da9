"""A message as JSON to a webhook, by Airflow's HTTP notifier."""

from __future__ import annotations

from pydantic import Field

from lakebound.alerts.channel import CONNECTION, Call, ChannelKind
from lakebound.alerts.model import Message
from lakebound.alerts.wording import ID_HEADER, Links, body_of

TIMEOUT_SECONDS = 10.0


class WebhookSpec(ChannelKind):
    """JSON by HTTP POST."""

    connection: str = Field(
        pattern=CONNECTION,
        description="Airflow connection of type http, as JSON; its host is the whole address, with path and token.",
    )
    endpoint: str | None = Field(default=None, description="Path below the connection's address. No secret belongs here.")
    optional: bool = Field(default=False, description="The connection may be missing. Messages then wait for it for some time.")

    @property
    def is_optional(self) -> bool:
        """Whether it may be that there is no such connection."""
        return self.optional

    def call(self, message: Message, links: Links) -> Call:
        """Return how a message is sent."""
        arguments = {
            "http_conn_id": self.connection,
            "endpoint": self.endpoint,
            "json": body_of(message, links),
            "headers": {ID_HEADER: message.id},
            "extra_options": {"timeout": TIMEOUT_SECONDS},
        }
        return Call("airflow.providers.http.notifications.http:HttpNotifier", arguments, has_address=True)


CHANNEL = WebhookSpec
