"""Checksums of bodies that a writer sends along."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable, Mapping

from tests.support.s3.s3_error import S3Error

PREFIX = "x-amz-checksum-"

# CRC32C and CRC64NVME are not in Python's library: they are stored as given, and judged by the reader.
_VERIFIED: Mapping[str, Callable[[bytes], bytes]] = {
    "x-amz-checksum-crc32": lambda data: zlib.crc32(data).to_bytes(4, "big"),
    "x-amz-checksum-sha1": lambda data: hashlib.sha1(data).digest(),
    "x-amz-checksum-sha256": lambda data: hashlib.sha256(data).digest(),
}
_ALGORITHMS = ("crc32", "crc32c", "crc64nvme", "sha1", "sha256")


def claimed_checksums(headers: Mapping[str, str]) -> dict[str, str]:
    """Return those of the headers (in lower case) that are checksums of the body."""
    names = (PREFIX + algorithm for algorithm in _ALGORITHMS)
    return {name: headers[name] for name in names if name in headers}


def check_checksums(data: bytes, claimed: Mapping[str, str], content_md5: str | None) -> None:
    """Refuse a body that is not what its writer says.

    Raises:
        S3Error: A checksum is another.
    """
    if content_md5 is not None and base64.b64encode(hashlib.md5(data).digest()).decode() != content_md5:
        raise S3Error(400, "BadDigest", "The Content-MD5 you specified did not match what we received.")
    for name, value in claimed.items():
        if name in _VERIFIED and base64.b64encode(_VERIFIED[name](data)).decode() != value:
            raise S3Error(400, "BadDigest", f"The {name} you specified did not match what we received.")
