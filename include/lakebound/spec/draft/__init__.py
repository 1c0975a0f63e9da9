"""What ``lakebound new`` writes: a schema inferred from sampled records, and the files of a new pipeline. Pure.

``unknown_fields`` compares the schema of a pipeline that is there with records.

Other rooms import ``connect``, ``files``, ``inference``, ``judged``, ``key_and_headers``, ``registered``, ``unknown_fields``
and ``wire_format``.
"""
