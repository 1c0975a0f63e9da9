"""One request to the server, and what it asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from functools import cached_property
from urllib.parse import unquote_to_bytes

from tests.support.s3.s3_error import S3Error

NOT_IMPLEMENTED = "NotImplemented"

# What S3 also has, and no client of the tests needs.
_UNKNOWN = frozenset(
    "acl accelerate analytics attributes cors encryption intelligent-tiering inventory legal-hold lifecycle logging metrics"
    " notification object-lock ownershipControls policy policyStatus publicAccessBlock replication requestPayment"
    " restore retention select tagging torrent versionId versions website X-Amz-Algorithm".split()
)


@dataclass(frozen=True)
class Call:
    """A request, whole.

    Args:
        method: GET, PUT …
        target: Path and query as in the request's first line.
        headers: As they came; names in any case.
        body: With the HTTP framing taken off, but perhaps framed as aws-chunked.
    """

    method: str
    target: str
    headers: Message
    body: bytes

    @cached_property
    def path(self) -> str:
        """The path, decoded once."""
        return _decoded(self.target.partition("?")[0])

    @property
    def bucket(self) -> str:
        """The bucket, or nothing."""
        return self.path.removeprefix("/").partition("/")[0]

    @property
    def key(self) -> str:
        """The key, or nothing."""
        return self.path.removeprefix("/").partition("/")[2]

    @cached_property
    def query(self) -> Mapping[str, str]:
        """The query, decoded once."""
        pairs = (pair.partition("=") for pair in self.target.partition("?")[2].split("&") if pair)
        return {_decoded(name.replace("+", " ")): _decoded(value.replace("+", " ")) for name, _, value in pairs}

    def header(self, name: str) -> str | None:
        """Return a header's value."""
        value = self.headers.get(name)
        return None if value is None else str(value)

    @cached_property
    def operation(self) -> str:
        """The operation's name, as S3 has it."""
        if _UNKNOWN & self.query.keys():
            return NOT_IMPLEMENTED
        if not self.bucket:
            return "ListBuckets" if self.method == "GET" else NOT_IMPLEMENTED
        return self._object_operation() if self.key else self._bucket_operation()

    def _bucket_operation(self) -> str:
        if self.method == "GET":
            for name, operation in _BUCKET_GETS.items():
                if name in self.query:
                    return operation
            return "ListObjectsV2" if self.query.get("list-type") == "2" else "ListObjects"
        if self.method == "POST":
            return "DeleteObjects" if "delete" in self.query else NOT_IMPLEMENTED
        return {"HEAD": "HeadBucket", "PUT": "CreateBucket", "DELETE": "DeleteBucket"}.get(self.method, NOT_IMPLEMENTED)

    def _object_operation(self) -> str:
        upload = "uploadId" in self.query
        if self.method == "PUT":
            copied = self.header("x-amz-copy-source") is not None
            if upload:
                return "UploadPartCopy" if copied else "UploadPart"
            return "CopyObject" if copied else "PutObject"
        if self.method == "POST":
            if upload:
                return "CompleteMultipartUpload"
            return "CreateMultipartUpload" if "uploads" in self.query else NOT_IMPLEMENTED
        plain, of_upload = _OBJECT_OPERATIONS.get(self.method, (NOT_IMPLEMENTED, NOT_IMPLEMENTED))
        return of_upload if upload else plain

    def copy_source(self) -> tuple[str, str]:
        """Return bucket and key of what is copied."""
        source = _decoded(self.header("x-amz-copy-source") or "")
        bucket, _, key = source.removeprefix("/").partition("/")
        return bucket, key


_BUCKET_GETS = {"location": "GetBucketLocation", "versioning": "GetBucketVersioning", "uploads": "ListMultipartUploads"}
_OBJECT_OPERATIONS = {
    "GET": ("GetObject", "ListParts"),
    "HEAD": ("HeadObject", NOT_IMPLEMENTED),
    "DELETE": ("DeleteObject", "AbortMultipartUpload"),
}


def _decoded(text: str) -> str:
    try:
        return unquote_to_bytes(text.encode("latin-1")).decode("utf-8")
    except UnicodeError:
        raise S3Error(400, "InvalidURI", "Couldn't parse the specified URI.") from None
