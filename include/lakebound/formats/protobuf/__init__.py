"""Protobuf: payloads of one message, as the columns of another version of it.

``files`` reads schemas; ``source``, ``definitions``, ``options`` and ``tokens`` their texts. ``records`` finds the message, and
``mapping`` says which columns it has. ``plan`` says how payloads become columns: ``shape`` which fields are read, ``columns``,
``leaves`` and ``well_known`` what is made of them. ``decoder`` does it: ``fields`` reads many messages at once in the bytes of
many records (``buffer``), ``single`` and ``walk`` one by one.
"""
