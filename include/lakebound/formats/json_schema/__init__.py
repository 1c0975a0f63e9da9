"""JSON whose JSON Schema is in a schema registry, or in a file of the project.

``documents`` follows references between schemas, ``mapping`` gives each part its column, ``fitting`` says where records of one
schema would be misread with the columns of another. Records themselves are read as any JSON (``lakebound.formats.json``).

Other rooms import ``documents`` and ``mapping``.
"""
