"""Catalogs of Iceberg tables for tests: a real PostgreSQL behind a proxy, and a REST catalog server, both with faults."""
