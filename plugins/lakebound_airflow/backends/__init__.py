"""Where applications run: one protocol, one file per backend, and the choice among them.

Other rooms import ``choice`` and ``connection``.
"""
