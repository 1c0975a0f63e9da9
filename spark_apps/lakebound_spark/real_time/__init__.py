"""Rows sent on one by one, by Spark's Real-Time Mode: the plan of a query, what Spark refuses of it, its epochs,
and the short ones that come first.

Other rooms import ``epochs``, ``refusals``, ``rows`` and ``warm_up``.
"""
