"""Tests that take long have a short form in ``make test``; ``make chaos`` runs them whole."""

from __future__ import annotations

import os

import pytest

LONG_FORM = os.environ.get("LAKEBOUND_CHAOS") == "full"

only_in_long_form = pytest.mark.skipif(not LONG_FORM, reason="only in make chaos")
