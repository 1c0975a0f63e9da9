"""A message to a service that Apprise knows, by Airflow's notifier, which is made to say whether the message was taken."""

from __future__ import annotations

import os
from typing import Any

import apprise
from airflow.providers.apprise.notifications.apprise import AppriseNotifier

from lakebound.alerts.model import Message
from lakebound.alerts.outbox import NoConnectionError, NotDeliveredError
from lakebound.alerts.routes import AppriseSpec
from lakebound.alerts.wording import Links, text_of, title_of


class CheckedAppriseNotifier(AppriseNotifier):
    """Airflow's own one drops Apprise's answer, so a message that no service took would count as delivered.

    Args:
        url: An Apprise URL to use in place of the connection.
        kwargs: Of Airflow's notifier.
    """

    def __init__(self, *, url: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.url = url

    def notify(self, context: Any) -> None:
        """Send it.

        Raises:
            NotDeliveredError: The service did not take it, there is none, or there are more than one: if one of them was
                down, the next try would bring the others the message again.
        """
        services = apprise.Apprise()
        if self.url is not None:
            services.add(self.url)
        else:
            self.hook.set_config_from_conn(self.hook.get_connection(self.apprise_conn_id), services)
        if not len(services):
            raise NotDeliveredError("its URL names no service that Apprise supports")
        if len(services) > 1:
            raise NotDeliveredError(f"its URL names {len(services)} services: give each service its own channel")
        taken = services.notify(body=self.body, title=self.title or "", body_format=self.body_format, tag=self.tag)
        if not taken:
            raise NotDeliveredError("the service did not accept the message")


def apprise_notifier(spec: AppriseSpec, message: Message, links: Links) -> CheckedAppriseNotifier:
    """Return what sends the message.

    Args:
        spec: The channel: an Airflow connection, or an environment variable with the service's URL.
        message: What is said, of which pipeline.
        links: Addresses of Airflow's UI and of the runbooks, for the text.

    Raises:
        NoConnectionError: The environment variable that holds the service's URL is not set.
    """
    url = os.environ.get(spec.env) if spec.env else None
    if spec.env and not url:
        raise NoConnectionError(f"the environment variable {spec.env} is not set where Airflow's tasks run")
    return CheckedAppriseNotifier(
        title=title_of(message), body=text_of(message, links), apprise_conn_id=spec.connection or "", url=url
    )
