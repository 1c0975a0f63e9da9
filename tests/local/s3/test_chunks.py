"""Bodies in chunks, signed or not; the signatures are those of the example in AWS's documentation of Signature Version 4."""

from __future__ import annotations

from dataclasses import replace

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


@pytest.mark.parametrize("checksum", ["sOO8/Q==", "AAAAAA=="])
def test_headers_behind_signed_chunks_are_signed(checksum: str) -> None:
    """The example of a body whose checksum stands behind it."""
    signer = replace(EXAMPLE, signature="106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e")
    chunks = (
        (65536, "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2"),
        (1024, "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7"),
    )
    last = (
        "0;chunk-signature=2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992\r\n"
        f"x-amz-checksum-crc32c:{checksum}\r\n"
        "x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n\r\n"
    )
    body = b"".join(f"{size:x};chunk-signature={signature}\r\n".encode() + b"a" * size + b"\r\n" for size, signature in chunks)
    if checksum == "sOO8/Q==":
        assert decode(body + last.encode(), signer) == (b"a" * 66560, {"x-amz-checksum-crc32c": checksum})
    else:
        with pytest.raises(S3Error):
            decode(body + last.encode(), signer)


def test_headers_stand_behind_the_last_chunk() -> None:
    body = b"3\r\nabc\r\n2\r\nde\r\n0\r\nx-amz-checksum-crc32:hYfYZw==\r\n\r\n"
    assert decode(body, None) == (b"abcde", {"x-amz-checksum-crc32": "hYfYZw=="})


@pytest.mark.parametrize("body", [b"", b"3\r\nab", b"3\r\nabcd\r\n0\r\n\r\n", b"x\r\nabc\r\n0\r\n\r\n", b"3\r\nabc\r\n"])
def test_broken_framing_is_refused(body: bytes) -> None:
    with pytest.raises(S3Error) as refused:
        decode(body, None)
    assert refused.value.code == "IncompleteBody"
