"""The proof of a landing: facts in, verdict out. Pure, but for ``collect``, which reads the facts.

Other rooms import ``collect``, ``entries``, ``history``, ``offset_arrays``, ``record``, ``result``
and ``windows``.
"""
