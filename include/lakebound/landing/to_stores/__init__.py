"""Online stores as targets: the rows or counters of a batch and its ledger entry, in one transaction or script.

Other rooms import ``open_store``, ``postgres_statements``, ``record_keys``, ``shape``, ``store_rows``, ``target`` and
``value_bounds``.
"""
