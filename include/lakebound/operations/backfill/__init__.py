"""What backfills have in common: jobs that land offsets below the high-water marks again, such as replays and releases.

Other rooms import ``half_done``, ``orders``, ``running`` and ``tables``.
"""
