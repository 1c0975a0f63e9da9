"""What ``lakebound new`` writes: a schema inferred from sampled records, and the files of a new pipeline. Pure.

Other rooms import ``epoch_units``, ``files``, ``inference``, ``judged`` and ``time_texts``.
"""
