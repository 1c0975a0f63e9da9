"""The doctor's facts and rules for a checkpoint of a stream that Lakebound did not start.

Other rooms import ``doctor`` and ``mending``.
"""
