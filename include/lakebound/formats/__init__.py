"""Value formats: what the bytes of records are in the columns of a schema, without Spark. One contract, one module per format.

Other rooms import ``composed``, ``contract``, ``epoch_units``, ``framing``, ``headers``, ``kinds``, ``plain``, ``reasons``,
``registered``, ``room``, ``same_names``, ``schemas``, ``times`` and ``versions``.
"""
