"""What one test makes of the log is gone before the next, so that their order does not matter."""

from __future__ import annotations

import pytest
import structlog
from tests.support.streams.command_line import lakebound, settings

from lakebound.settings import Settings

__all__ = ["settings"]


@pytest.mark.parametrize("time", ["first", "second"])
def test_a_command_in_a_test_configures_the_log_of_that_test_alone(
    settings: Settings, time: str, capsys: pytest.CaptureFixture[str]
) -> None:
    structlog.get_logger().info("before the command")
    assert "before the command" in capsys.readouterr().out
    lakebound("ledger", "no-such-pipeline", code=1)
    structlog.get_logger().info("after the command")
    assert "after the command" in capsys.readouterr().err, "commands keep the standard output for answers"
