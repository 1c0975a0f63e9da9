"""What backfills have in common: jobs that land offsets below the high-water marks again, such as replays and releases.

Other rooms import ``orders``, ``running`` and ``tables``.
"""
