"""Backup and restore of what is beside the tables: the pipelines' state, and the Iceberg catalog where it is a SQLite file.

Other rooms import ``archive``, ``plan`` and ``restore``.
"""
