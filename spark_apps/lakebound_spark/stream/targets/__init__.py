"""Kinds of targets beside tables: one module for each; ``lakebound_spark.stream.target_kind`` says what a module has."""
