"""Replay: a bounded job that lands what the tables lack below their high-water marks, beside the stream or without it.

Other rooms import ``alone``, ``bounds``, ``chunks``, ``orders``, ``plan`` and ``prepare``.
"""
