from __future__ import annotations

import re
import subprocess

import pytest

from lakebound.landing.spark_command import QUICK_START

pytestmark = pytest.mark.spark


def test_a_quick_start_leaves_a_jvm_that_lives_on_as_much_room_for_code() -> None:
    """A Spark of the tests, and so a demo that somebody left running, failed when 48 MB of code were full."""
    assert code_cache_bytes(*QUICK_START.split()) >= code_cache_bytes()


def code_cache_bytes(*options: str) -> int:
    command = ["java", *options, "-XX:+PrintFlagsFinal", "-version"]
    flags = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"\bReservedCodeCacheSize\s*=\s*(\d+)", flags)
    assert found is not None
    return int(found[1])
