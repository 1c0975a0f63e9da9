"""How operators reach what is outside: keys, spark-submit, the state of tasks.

Other rooms import ``rest_key``, ``spark_submit`` and ``task_state``.
"""
