"""The life of a streaming application: it opens the tables, runs the query, ends with a word about how.

Other rooms import ``application``, ``source`` and ``stop_signal``.
"""
