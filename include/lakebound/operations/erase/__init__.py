"""Erasing rows by decision: a condition gives positions in Kafka, and every table loses the rows of these, once and for all.

Other rooms import ``apply``, ``plan`` and ``prepare``.
"""
