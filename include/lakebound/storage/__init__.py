"""Storage: folders and object stores behind one Protocol, with conditional writes; and how a PostgreSQL answers.

Other rooms import ``location``, ``objects``, ``options``, ``postgresql``, ``race``, ``requests`` and ``store``.
"""
