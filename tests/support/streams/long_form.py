"""Tests that take long have a short form in ``make test``; other targets of the Makefile run them whole (tests/README.md)."""

from __future__ import annotations

import os

import pytest

LONG_FORM = os.environ.get("LAKEBOUND_CHAOS") == "full"

only_in_long_form = pytest.mark.skipif(not LONG_FORM, reason="only in the long form: make chaos, test-spark, test-integration")


def examples(many: int) -> int:
    """Return how many generated examples a test tries: so many in the long form (``make test-generated``), else a quarter."""
    return many if LONG_FORM else max(1, many // 4)


ALL_READERS = os.environ.get("LAKEBOUND_READERS") == "full"
"""``make test-readers`` asks every reader everything of every generated table; ``make test`` takes a sample by the seed."""

READERS_SEED = int(os.environ.get("LAKEBOUND_READERS_SEED") or 1)
