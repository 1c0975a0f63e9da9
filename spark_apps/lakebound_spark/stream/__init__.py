"""The life of a streaming application: it opens the tables, runs the query, and records its outcome.

Other rooms import ``application``, ``opening``, ``source``, ``stop_signal`` and ``target_kind``.
"""
