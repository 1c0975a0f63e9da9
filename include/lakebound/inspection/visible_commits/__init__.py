"""Commits as a reader sees them that waits for the next version: one module per table format, each with a ``CommitWatch``."""
