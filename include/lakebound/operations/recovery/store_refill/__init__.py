"""Fill a store from a table of its pipeline: for what the store needs, and Kafka no longer has.

Other rooms import ``apply``, ``collect`` and ``plan``.
"""
