"""Data quality of exactly what landed: each range of commits is validated once. Knows neither Spark nor Great Expectations.

Other rooms import ``by_hand``, ``expectation_files``, ``expectation_types``, ``expectations``, ``findings_file``,
``gx_catalog``, ``history``, ``landed_files``, ``lateness``, ``line``, ``page``, ``planning``, ``quarantine_copies``,
``report_file``, ``run``, ``submission``, ``table_columns``, ``verdict``, ``volume`` and ``waiting_file``.
"""
