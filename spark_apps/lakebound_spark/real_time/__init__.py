"""Rows sent on one by one, by Spark's Real-Time Mode: the plan of a query, what Spark refuses of it, and its epochs.

Other rooms import ``epochs``, ``refusals`` and ``rows``.
"""
