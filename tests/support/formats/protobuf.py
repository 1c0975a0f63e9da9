"""Messages of .proto texts, compiled by protoc and made by Protobuf's own classes: nothing of Lakebound has a part in them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_tools import protoc

_PROTO = Path(protoc.__file__).parent / "_proto"


def message_class(text: str, name: str, imported: Mapping[str, str] | None = None) -> Any:
    """Return the class of a message.

    Args:
        text: Of the file.
        name: Full name of the message.
        imported: Other files, by the path that is imported.
    """
    pool = DescriptorPool()
    for one in FileDescriptorSet.FromString(descriptors(text, tuple((imported or {}).items()))).file:
        pool.AddSerializedFile(one.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName(name))


@lru_cache(maxsize=64)
def descriptors(text: str, imported: tuple[tuple[str, str], ...] = ()) -> bytes:
    """Return the serialised ``FileDescriptorSet`` of a text with all that it imports, the text's own file last."""
    with tempfile.TemporaryDirectory() as folder:
        for path, content in (("own.proto", text), *imported):
            file = Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, encoding="utf-8")
        made = Path(folder, "set")
        arguments = ("protoc", f"-I{folder}", f"-I{_PROTO}", "--include_imports", f"-o{made}", str(Path(folder, "own.proto")))
        assert protoc.main(arguments) == 0, text
        return made.read_bytes()
