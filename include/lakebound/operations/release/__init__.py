"""The quarantine of a pipeline: what is in it and why, and the release of what fits today.

Other rooms import ``candidates``, ``listing``, ``orders``, ``plan``, ``reading`` and ``released``.
"""
