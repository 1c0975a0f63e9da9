"""What ``lakebound check`` and ``lakebound try`` ask of Spark.

Other rooms import ``landed``, ``plan`` and ``trial``.
"""
