"""How operators reach what is outside: Spark's connections, spark-submit, the state of tasks.

Other rooms import ``connection``, ``rest_key``, ``spark_submit`` and ``task_state``.
"""
