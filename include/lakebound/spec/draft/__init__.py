"""What ``lakebound new`` writes: a schema inferred from sampled records, and the files of a new pipeline. Pure.

``unknown_fields`` compares the schema of a pipeline that is there with records.

Other rooms import ``files``, ``inference``, ``judged``, ``key_and_headers`` and ``unknown_fields``.
"""
