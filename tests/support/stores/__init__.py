"""Stores as targets: servers, an application without Spark, and what is expected of them."""
