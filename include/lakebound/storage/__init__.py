"""Storage: folders of this machine and object stores behind one Protocol, with conditional writes.

Other rooms import ``location``, ``options``, ``race`` and ``requests``.
"""
