"""The broker of tests: a real one, for minutes."""

from __future__ import annotations

import pytest

from lakebound.landing.spark_command import QUICK_START
from lakebound.local.broker import Broker


class ShortLivedBroker(Broker):
    """A broker whose JVM compiles once: a third of a test's broker was the second compiler, of which minutes get nothing."""

    def launch(self) -> None:
        """Start it if it does not run; Java reads further options from JDK_JAVA_OPTIONS."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("JDK_JAVA_OPTIONS", QUICK_START)
            super().launch()
