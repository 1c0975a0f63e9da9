"""Delta Lake: its log is read and written here, and by one function alone.

Other rooms import ``actions``, ``checkpoints``, ``draft``, ``durations``, ``features``, ``history``, ``log``,
``open``, ``put``, ``replace``, ``statistics``, ``tip`` and ``vectors``.
"""
