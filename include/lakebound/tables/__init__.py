"""Tables, one Protocol for both formats: read the ledger, commit files with an entry exactly once.

Other rooms import ``access``, ``column_facts``, ``commit``, ``current_files``, ``datafiles``, ``declared``,
``entries``, ``erased``, ``erasing``, ``fitting``, ``formats``, ``full_disk``, ``guest``, ``health``, ``history``,
``landed``, ``layout``, ``misread``, ``outages``, ``partition_values``, ``places``, ``plan``, ``prepared``,
``reconstruction``, ``schema_change``, ``schemas``, ``size``, ``stale_ledger``, ``table``, ``take_over``, ``target``,
``type_names`` and ``warehouse_check``.
"""
