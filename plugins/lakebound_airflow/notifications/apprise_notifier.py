"""A message to a service that Apprise knows, by Airflow's notifier, which is made to say whether the message was taken."""

from __future__ import annotations

import os
from typing import Any

import apprise
from airflow.providers.apprise.notifications.apprise import AppriseNotifier

from lakebound.alerts.outbox import NoConnectionError, NotDeliveredError


class CheckedAppriseNotifier(AppriseNotifier):
    """Airflow's own one drops Apprise's answer, so a message that no service took would count as delivered.

    Args:
        variable: Environment variable with an Apprise URL to use in place of the connection.
        kwargs: Of Airflow's notifier.
    """

    def __init__(self, *, variable: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.variable = variable

    def notify(self, context: Any) -> None:
        """Send it.

        Raises:
            NoConnectionError: The environment variable is not set.
            NotDeliveredError: The service did not take it, there is none, or there are more than one: if one of them was
                down, the next try would bring the others the message again.
        """
        services = apprise.Apprise()
        if self.variable is not None:
            url = os.environ.get(self.variable)
            if not url:
                raise NoConnectionError(f"the environment variable {self.variable} is not set where Airflow's tasks run")
            services.add(url)
        else:
            self.hook.set_config_from_conn(self.hook.get_connection(self.apprise_conn_id), services)
        if not len(services):
            raise NotDeliveredError("its URL names no service that Apprise supports")
        if len(services) > 1:
            raise NotDeliveredError(f"its URL names {len(services)} services: give each service its own channel")
        taken = services.notify(body=self.body, title=self.title or "", body_format=self.body_format, tag=self.tag)
        if not taken:
            raise NotDeliveredError("the service did not accept the message")
