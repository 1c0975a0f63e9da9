"""Bounded jobs that commit as guests of a running stream: replays and releases.

Other rooms import ``release`` and ``replay``.
"""
