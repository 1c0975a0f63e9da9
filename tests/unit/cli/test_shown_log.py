"""What is shown of a log, however it arrives: all of it but the traceback of a refusal."""

from __future__ import annotations

import pytest

from lakebound.cli.shown_log import ShownLog

REFUSED = """\
2026-11-23 18:36:19,123 ERROR lakebound_spark.stream.application: pipeline payments is refused
Traceback (most recent call last):
  File "application.py", line 105, in run
    self._land(lease)
lakebound.errors.SchemaChangedError: pipeline 'payments': its rows do not fit

The above exception was the direct cause of the following exception:
"""
BEFORE = "2026-11-23 18:36:18,000 INFO x: pipeline payments: lease taken\n"
AFTER = "26/11/23 18:36:20 WARN Spark: it ends\nrefused: pipeline 'payments': its rows do not fit\nits last word"
FAILED = REFUSED.replace("is refused", "ended")


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("everything", [False, True])
def test_only_the_traceback_of_a_refusal_is_left_out(size: int, everything: bool) -> None:
    text, shown = f"{BEFORE}{REFUSED}{AFTER}", ShownLog(everything=everything)
    given = "".join(shown.take(text[at : at + size]) for at in range(0, len(text), size)) + shown.end()
    assert given == (text if everything else f"{BEFORE}{AFTER}")


def test_the_traceback_of_a_failure_is_shown() -> None:
    assert ShownLog(everything=False).take(FAILED) == FAILED


def test_the_verdict_ends_the_traceback() -> None:
    assert ShownLog(everything=False).take(f"{REFUSED}refused: why\n") == "refused: why\n"
