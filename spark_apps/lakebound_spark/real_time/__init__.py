"""Rows sent on one by one, by Spark's Real-Time Mode: a query's plan, what Spark refuses of it, and its epochs.

The first epochs of a start are short.

Other rooms import ``epochs``, ``refusals``, ``rows``, ``spark_decoder`` and ``warm_up``.
"""
