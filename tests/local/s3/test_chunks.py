"""Bodies in chunks, signed or not; the signatures are those of the example in AWS's documentation of Signature Version 4."""

from __future__ import annotations

import pytest
from tests.support.s3.access import AccessKey
from tests.support.s3.aws_chunked import decode
from tests.support.s3.s3_error import S3Error
from tests.support.s3.signature import Signer, signing_key

SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
EXAMPLE = Signer(
    AccessKey("AKIAIOSFODNN7EXAMPLE", SECRET),
    "20130524T000000Z",
    "20130524/us-east-1/s3/aws4_request",
    "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
    signing_key(SECRET, "20130524", "us-east-1", "s3"),
)
CHUNKS = (
    (65536, "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648"),
    (1024, "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497"),
    (0, "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"),
)
BODY = b"".join(f"{size:x};chunk-signature={signature}\r\n".encode() + b"a" * size + b"\r\n" for size, signature in CHUNKS)


def test_signed_chunks_are_verified() -> None:
    assert decode(BODY, EXAMPLE) == (b"a" * 66560, {})


@pytest.mark.parametrize("at", [200, 66000, len(BODY) - 10])
def test_another_chunk_than_the_signed_one_is_refused(at: int) -> None:
    changed = BODY[:at] + (b"0" if BODY[at : at + 1] != b"0" else b"1") + BODY[at + 1 :]
    with pytest.raises(S3Error) as refused:
        decode(changed, EXAMPLE)
    assert refused.value.code == "SignatureDoesNotMatch"


def test_headers_stand_behind_the_last_chunk() -> None:
    body = b"3\r\nabc\r\n2\r\nde\r\n0\r\nx-amz-checksum-crc32:hYfYZw==\r\n\r\n"
    assert decode(body, None) == (b"abcde", {"x-amz-checksum-crc32": "hYfYZw=="})


@pytest.mark.parametrize("body", [b"", b"3\r\nab", b"3\r\nabcd\r\n0\r\n\r\n", b"x\r\nabc\r\n0\r\n\r\n", b"3\r\nabc\r\n"])
def test_broken_framing_is_refused(body: bytes) -> None:
    with pytest.raises(S3Error) as refused:
        decode(body, None)
    assert refused.value.code == "IncompleteBody"
