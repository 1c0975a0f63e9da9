"""Avro: values of one schema, read as another one, to columns.

``parsing`` makes ``types`` of a schema's text, ``mapping`` their columns. ``resolution`` says what becomes of what a writer
wrote: ``shape`` is what is read, ``makers`` what is made of it. Bytes are read by ``many`` for many records at once, and by
``single`` for those that ``many`` leaves; both write down what they found on the same ``tape``.
"""
