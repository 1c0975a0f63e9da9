"""What each day brought, of all pipelines: from figures that applications left in the state; no table and no Kafka is asked.

Other rooms import ``daily``, ``kept`` and ``page``.
"""
