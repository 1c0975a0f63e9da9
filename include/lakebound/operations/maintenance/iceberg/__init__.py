"""Maintenance of Iceberg tables: expiry, and what may not be deleted.

Other rooms import ``partition``.
"""
