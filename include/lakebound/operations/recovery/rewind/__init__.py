"""Rewind: a pipeline's tables go back to an earlier time, and landing continues from their offsets.

Other rooms import ``apply`` and ``facts``.
"""
