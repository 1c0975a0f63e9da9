"""What people write: a pipeline's YAML, read into frozen values, with every mistake named by its field and line.

Other rooms import ``claims``, ``complete_hours``, ``connection``, ``ddl``, ``disks``, ``disputes``, ``headers``,
``input_columns``, ``installation_file``, ``key``, ``limits``, ``load``, ``maintenance``, ``named_files``, ``objectives``,
``partition_warnings``, ``pipeline``, ``pipeline_files``, ``placed``, ``postgres``, ``problem_lines``, ``real_time``,
``real_time_values``, ``reference``, ``registries_file``, ``registry``, ``schema``, ``schema_source``,
``secret_bindings``, ``secret_uses``, ``secrets``, ``source``, ``spark``, ``spark_rules``, ``state``, ``state_store``,
``table``, ``table_format``, ``table_properties``, ``times``, ``to_stores``, ``to_topics``, ``tombstones``, ``transform_files``,
``value``, ``value_bounds``, ``wanted_bindings``, ``warehouse``, ``warehouses_file``, ``yaml_model`` and ``yaml_source``.
"""
