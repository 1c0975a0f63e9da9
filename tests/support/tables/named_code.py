"""Code that a table names: to import it is to have run it."""

from __future__ import annotations

raise SystemExit("code that a table names was loaded")
