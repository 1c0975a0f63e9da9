"""Tables, one Protocol for both formats: read the ledger, commit files with an entry exactly once.

Other rooms import ``access``, ``catalogs``, ``column_facts``, ``commit``, ``contents``, ``datafiles``, ``declared``,
``entries``, ``erased``, ``erasing``, ``fitting``, ``format_rules``, ``formats``, ``full_disk``, ``guest``, ``health``,
``history``, ``landed``, ``layout``, ``misread``, ``outages``, ``partition_values``, ``places``, ``plan``, ``prepared``,
``reconstruction``, ``schema_change``, ``schemas``, ``stale_ledger``, ``table``, ``take_over``, ``target`` and
``type_names``.
"""
