"""What ``lakebound check`` and ``lakebound try`` ask of Spark.

Other rooms import ``plan`` and ``trial``.
"""
