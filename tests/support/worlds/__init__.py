"""Worlds in memory: pipelines as crashes leave them, faults, and what a restart would do."""
