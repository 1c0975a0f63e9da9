"""The doctor: facts are collected first, then pure rules give one verdict. It never writes.

Other rooms import ``diagnosis`` and ``examine``.
"""
