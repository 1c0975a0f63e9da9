"""Reads and judges, and changes no table's rows that landed: doctor, proof, validation, freshness, queries.

Other rooms import ``disk_look``, ``disk_space``, ``late``, ``query``, ``registry_check``, ``registry_search``,
``schema_check``, ``store_check``, ``store_cost`` and ``visible_freshness``.
"""
