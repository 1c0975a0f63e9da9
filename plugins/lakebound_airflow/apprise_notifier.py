"""Airflow's Apprise notifier, with a word on whether the message was taken."""

from __future__ import annotations

from typing import Any

import apprise
from airflow.providers.apprise.notifications.apprise import AppriseNotifier

from lakebound.alerts.outbox import NotDeliveredError


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
            NotDeliveredError: A service did not take it, or there is none. Who did gets it again with the next try.
        """
        services = apprise.Apprise()
        if self.url is not None:
            services.add(self.url)
        else:
            self.hook.set_config_from_conn(self.hook.get_connection(self.apprise_conn_id), services)
        if not len(services):
            raise NotDeliveredError("it names no service that Apprise knows")
        taken = services.notify(body=self.body, title=self.title or "", body_format=self.body_format, tag=self.tag)
        if not taken:
            raise NotDeliveredError("no service took it, or not every one")
