"""From a pipeline to what lands its records: the assembly, made in one place, and the lander of batches.

Other rooms import ``assembly``, ``lander``, ``parts``, ``trimming`` and ``window_lander``.
"""
