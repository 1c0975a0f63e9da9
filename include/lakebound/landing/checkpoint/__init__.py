"""Spark's checkpoint files: what a batch of ours reads, and what the files of any query say.

Other rooms import ``checksums``, ``log_files`` and ``offset_log``.
"""
