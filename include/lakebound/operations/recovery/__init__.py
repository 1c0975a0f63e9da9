"""Repairs that a person approves: a plan from facts (pure), and its application while its facts still hold.

Other rooms import ``actions``, ``apply``, ``approval``, ``plan``, ``store_rebuild`` and ``suggestion``.
"""
