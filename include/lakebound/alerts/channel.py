"""What a kind of channel is: its settings as ``alerts.yaml`` has them, and how it sends a message.

A kind is one module in the folder ``channels``, named as its key in ``alerts.yaml``. Its constant ``CHANNEL`` is the model of
its settings. Nothing else in the project names it.
"""

from __future__ import annotations

import pkgutil
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from lakebound.alerts import channels
from lakebound.alerts.model import Message
from lakebound.alerts.wording import Links
from lakebound.frozen import Frozen

CONNECTION = r"^[\w.-]+$"
"""What the id of an Airflow connection looks like."""


@dataclass(frozen=True)
class Call:
    """How a message is sent: by which notifier, with which arguments.

    Attributes:
        notifier: Class of Airflow's or of the plugin, as ``module:class``: the core imports neither.
        arguments: Of its constructor. They hold no secret: addresses and passwords are in the connection.
        has_address: Whether the connection is a web address, which Airflow must read as it is written.
        loggers: Loggers of the notifier's libraries, which are silent while it sends: they might log an address.
    """

    notifier: str
    arguments: Mapping[str, Any] = field(repr=False)
    has_address: bool = False
    loggers: tuple[str, ...] = ()


class ChannelKind(Frozen):
    """The settings of one kind of channel."""

    connection: str | None
    """The Airflow connection that it needs; None where something else holds the address."""

    @property
    def is_optional(self) -> bool:
        """Whether it may be that there is no such connection."""
        return False

    @property
    def place(self) -> str:
        """Where its address is, for messages; never the address."""
        return f"connection {self.connection}"

    @abstractmethod
    def call(self, message: Message, links: Links) -> Call:
        """Return how a message is sent; a test message is sent in the same way.

        Args:
            message: What is said, of which pipeline.
            links: Addresses of Airflow's UI and of the runbooks, for the text.
        """


@cache
def channel_kinds() -> Mapping[str, type[ChannelKind]]:
    """Return every kind by its key in ``alerts.yaml``."""
    names = sorted(module.name for module in pkgutil.iter_modules(channels.__path__))
    return {name: import_module(f"{channels.__name__}.{name}").CHANNEL for name in names}
