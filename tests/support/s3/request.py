"""One permitted request, and how its parts are read."""

from __future__ import annotations

import hashlib
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass

from tests.support.s3.access import AccessKey
from tests.support.s3.call import Call
from tests.support.s3.checksums import check_checksums, claimed_checksums
from tests.support.s3.objects import Condition, now
from tests.support.s3.s3_error import S3Error
from tests.support.s3.stored import StoredObject

_KEPT_HEADERS = ("content-type", "cache-control", "content-disposition", "content-encoding", "content-language", "expires")


@dataclass(frozen=True)
class Request:
    """A request whose signature is right.

    Args:
        call: As it came.
        caller: Who signed it.
        data: The content of its body.
        checksums: Those that came with the body, in headers before or behind it.
    """

    call: Call
    caller: AccessKey
    data: bytes
    checksums: Mapping[str, str]

    @property
    def bucket(self) -> str:
        """The bucket that it names."""
        return self.call.bucket

    @property
    def key(self) -> str:
        """The key that it names."""
        return self.call.key

    @property
    def query(self) -> Mapping[str, str]:
        """The query, decoded."""
        return self.call.query

    @property
    def condition(self) -> Condition:
        """What the write demands."""
        return Condition(self.call.header("if-match"), self.call.header("if-none-match"))


def stored_object(request: Request) -> StoredObject:
    """Return the object that the request's body is, refused if a checksum is another."""
    check_checksums(request.data, request.checksums, request.call.header("content-md5"))
    etag = hashlib.md5(request.data).hexdigest()
    return StoredObject(request.key, request.data, etag, now(), kept_headers(request.call), request.checksums)


def kept_headers(call: Call) -> dict[str, str]:
    """Return the headers that are kept with an object."""
    kept = {
        name.lower(): str(value)
        for name, value in call.headers.items()
        if name.lower() in _KEPT_HEADERS or name.lower().startswith("x-amz-meta-")
    }
    # The framing of the transport is no encoding of the object.
    encodings = [part.strip() for part in kept.pop("content-encoding", "").split(",")]
    if left := ",".join(part for part in encodings if part and part != "aws-chunked"):
        kept["content-encoding"] = left
    return {"content-type": "binary/octet-stream", **kept}


def request_checksums(call: Call, trailers: Mapping[str, str]) -> dict[str, str]:
    """Return the checksums that came with a body, in headers before or behind it."""
    return claimed_checksums({**{name.lower(): str(value) for name, value in call.headers.items()}, **trailers})


def byte_range(header: str | None, size: int) -> range | None:
    """Return the bytes that are asked for; None for all, also when the header means nothing to S3."""
    found = re.fullmatch(r"bytes=(\d*)-(\d*)", header or "")
    if found is None or found[1] == found[2] == "":
        return None
    if found[1]:
        span = range(int(found[1]), min(int(found[2]) + 1, size) if found[2] else size)
    else:
        span = range(max(0, size - int(found[2])), size)
    if not span:
        raise S3Error(416, "InvalidRange", "The requested range is not satisfiable")
    return span


def number_of(query: Mapping[str, str], name: str, default: int) -> int:
    """Return a number of the query."""
    try:
        return int(query.get(name) or default)
    except ValueError:
        raise S3Error(400, "InvalidArgument", f"Argument {name} must be an integer") from None


def parsed_body(data: bytes) -> ElementTree.Element:
    """Return the document that a body is."""
    try:
        return ElementTree.fromstring(data)
    except ElementTree.ParseError:
        raise S3Error(400, "MalformedXML", "The XML you provided was not well-formed") from None
