"""Protobuf: payloads of one message, as the columns of another version of it.

``files`` reads schemas; ``source``, ``definitions``, ``options`` and ``tokens`` their texts. ``records`` finds the message, and
``mapping`` says which columns it has. ``plan`` says how payloads become columns: ``layout`` what is decoded, ``columns``,
``leaves`` and ``well_known`` what is made of it. ``decoder`` does it, and ``explained`` says why bytes are no message.
"""
