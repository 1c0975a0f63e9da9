"""What ``lakebound check`` and ``lakebound try`` ask of Spark.

Other rooms import ``closed_windows``, ``landed``, ``plan`` and ``trial``.
"""
