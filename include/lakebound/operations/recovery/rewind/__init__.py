"""Rewind: a pipeline's tables go back to a moment, and landing goes on from their offsets.

Other rooms import ``apply`` and ``facts``.
"""
