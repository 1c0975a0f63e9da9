"""JSON objects, one per record.

``decoder`` decodes many records at once where all is usual, and gives each other record to ``record``, which reads it exactly.
"""
