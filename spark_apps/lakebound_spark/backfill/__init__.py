"""Backfill: a bounded job that lands offsets below the high-water marks again, beside the stream; a policy says which.

Other rooms import ``coverage_decides``, ``rows_decide`` and ``rows_replaced``.
"""
