"""For checks of your own: what a finding is, and how it is written (docs/how-to/alerts.md). The path does not change."""

from __future__ import annotations

from lakebound.control.findings import Finding, Severity, write_findings

__all__ = ["Finding", "Severity", "write_findings"]
