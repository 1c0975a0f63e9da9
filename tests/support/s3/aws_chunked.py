"""The framing ``aws-chunked``: a body in chunks, each perhaps with a signature, and headers behind the last."""

from __future__ import annotations

import hashlib
import hmac

from tests.support.s3.s3_error import S3Error
from tests.support.s3.signature import Signer

_EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()


def decode(body: bytes, signer: Signer | None) -> tuple[bytes, dict[str, str]]:
    """Return the content of a body, and its trailing headers in lower case.

    Args:
        body: As it came.
        signer: What the signatures of the chunks are judged by; None if they carry none.

    Raises:
        S3Error: The framing is broken, or a chunk is not signed as it should be.
    """
    data: list[bytes] = []
    before = signer.signature if signer else ""
    at = 0
    while True:
        line, at = _line(body, at)
        size_text, _, extension = line.partition(b";")
        size = _size(size_text)
        chunk = body[at : at + size]
        if len(chunk) < size:
            raise _broken()
        if signer:
            claimed = extension.decode("ascii").removeprefix("chunk-signature=")
            before = _check(signer, "AWS4-HMAC-SHA256-PAYLOAD", before, [_EMPTY_SHA256, _sha256(chunk)], claimed)
        at += size
        if size == 0:
            break
        data.append(chunk)
        rest, at = _line(body, at)
        if rest:
            raise _broken()
    return b"".join(data), _trailers(body[at:], signer, before)


def _trailers(rest: bytes, signer: Signer | None, before: str) -> dict[str, str]:
    trailers: dict[str, str] = {}
    claimed = ""
    for line in rest.replace(b"\r\n", b"\n").split(b"\n"):
        name, colon, value = line.decode("ascii").partition(":")
        if name.strip().lower() == "x-amz-trailer-signature":
            claimed = value.strip()
        elif colon:
            trailers[name.strip().lower()] = value.strip()
    if signer and trailers:
        canonical = "".join(f"{name}:{value}\n" for name, value in sorted(trailers.items()))
        _check(signer, "AWS4-HMAC-SHA256-TRAILER", before, [_sha256(canonical.encode())], claimed)
    return trailers


def _check(signer: Signer, algorithm: str, before: str, hashes: list[str], claimed: str) -> str:
    text = "\n".join([algorithm, signer.amz_date, signer.scope, before, *hashes])
    right = hmac.new(signer.key, text.encode(), hashlib.sha256).hexdigest()
    if not hmac.compare_digest(right, claimed):
        raise S3Error(403, "SignatureDoesNotMatch", "The signature of a chunk does not match")
    return right


def _line(body: bytes, at: int) -> tuple[bytes, int]:
    end = body.find(b"\r\n", at)
    if end < 0:
        raise _broken()
    return body[at:end], end + 2


def _size(text: bytes) -> int:
    try:
        return int(text, 16)
    except ValueError:
        raise _broken() from None


def _broken() -> S3Error:
    return S3Error(400, "IncompleteBody", "The request body is not framed as aws-chunked")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
