"""A message to a service that Apprise knows, by the plugin's notifier."""

from __future__ import annotations

from pydantic import Field, model_validator

from lakebound.alerts.channel import CONNECTION, Call, ChannelKind
from lakebound.alerts.model import Message
from lakebound.alerts.wording import Links, text_of, title_of
from lakebound.plain_text import chat_text


class AppriseSpec(ChannelKind):
    """Slack, Teams, PagerDuty, Opsgenie and [many more](https://github.com/caronc/apprise/wiki)."""

    connection: str | None = Field(default=None, pattern=CONNECTION, description="Airflow connection of type apprise.")
    env: str | None = Field(default=None, description="Environment variable that holds one Apprise URL.")

    @model_validator(mode="after")
    def _one_place(self) -> AppriseSpec:
        if (self.connection is None) == (self.env is None):
            raise ValueError("give either connection or env")
        return self

    @property
    def place(self) -> str:
        """Where the URL of the service is."""
        return f"connection {self.connection}" if self.connection else f"${self.env}"

    def call(self, message: Message, links: Links) -> Call:
        """Return how a message is sent."""
        arguments = {
            "title": chat_text(title_of(message)),
            "body": chat_text(text_of(message, links)),
            "apprise_conn_id": self.connection or "",
            "variable": self.env,
        }
        return Call("lakebound_airflow.notifications.apprise_notifier:CheckedAppriseNotifier", arguments, loggers=("apprise",))


CHANNEL = AppriseSpec
