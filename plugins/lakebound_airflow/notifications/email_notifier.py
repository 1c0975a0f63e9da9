"""A message as an e-mail, by Airflow's SMTP notifier."""

from __future__ import annotations

from airflow.providers.smtp.notifications.smtp import SmtpNotifier

from lakebound.alerts.model import Message
from lakebound.alerts.routes import EmailSpec
from lakebound.alerts.wording import ID_HEADER, Links, html_of, title_of


def email_notifier(spec: EmailSpec, message: Message, links: Links) -> SmtpNotifier:
    """Return what sends the message.

    Args:
        spec: The channel: Airflow connection, sender and recipients.
        message: What is said, of which pipeline.
        links: Addresses of Airflow's UI and of the runbooks, for the text.
    """
    return SmtpNotifier(
        to=list(spec.to),
        from_email=spec.sender,
        subject=title_of(message),
        html_content=html_of(message, links),
        custom_headers={ID_HEADER: message.id},
        smtp_conn_id=spec.connection,
    )
