"""Guests of a stream, which commit to its tables, in tests."""

from __future__ import annotations

import pytest

from lakebound.tables import guest


def without_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have guests try again at once.

    ``time.sleep`` itself stays: Py4J's thread would try as fast as it can, and so take half of the processor.
    """
    monkeypatch.setattr(guest, "_SHORTEST_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(guest, "_LONGEST_WAIT_SECONDS", 0.0)
