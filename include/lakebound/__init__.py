"""Lakebound's core: everything that needs neither Spark nor Airflow."""

from __future__ import annotations

__version__ = "0.1.0"
