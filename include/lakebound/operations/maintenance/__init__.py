"""Maintenance of a pipeline's tables: health in, plan out, both pure; the run is at the edge.

Other rooms import ``assessment``, ``engines``, ``health_history``, ``health_look``, ``keeping_up``, ``next_run``,
``past_reading``, ``planning_rules``, ``reading``, ``refusals``, ``run``, ``run_times``, ``score``, ``steps``,
``submission``, ``table_engine`` and ``wording``.
"""
