"""Reference data: small tables that change, read by the driver, kept in its memory, and given to the transform.

Other rooms import ``book`` and ``refresh``.
"""
