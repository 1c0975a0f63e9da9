"""A message as an e-mail, by Airflow's SMTP notifier."""

from __future__ import annotations

from pydantic import Field, field_validator

from lakebound.alerts.channel import CONNECTION, Call, ChannelKind
from lakebound.alerts.model import Message
from lakebound.alerts.wording import ID_HEADER, Links, html_of, title_of


class EmailSpec(ChannelKind):
    """E-mail by SMTP."""

    connection: str = Field(
        default="smtp_default",
        pattern=CONNECTION,
        description="Airflow connection of type smtp; its extra may have from_email.",
    )
    to: tuple[str, ...] = Field(min_length=1)
    sender: str | None = Field(default=None, alias="from", description="Default: from_email of the connection.")

    @field_validator("to")
    @classmethod
    def _addresses(cls, to: tuple[str, ...]) -> tuple[str, ...]:
        for address in to:
            if address.count("@") != 1 or any(character.isspace() for character in address):
                raise ValueError(f"{address!r} is not an address such as ada@example.org")
        return to

    def call(self, message: Message, links: Links) -> Call:
        """Return how a message is sent."""
        arguments = {
            "to": list(self.to),
            "from_email": self.sender,
            "subject": title_of(message),
            "html_content": html_of(message, links),
            "custom_headers": {ID_HEADER: message.id},
            "smtp_conn_id": self.connection,
        }
        return Call("airflow.providers.smtp.notifications.smtp:SmtpNotifier", arguments)


CHANNEL = EmailSpec
