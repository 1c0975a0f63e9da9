"""Signature Version 4, verified for requests that carry it in their header ``Authorization``."""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

from tests.support.s3.access import AccessKey, AccessKeys
from tests.support.s3.call import Call
from tests.support.s3.s3_error import S3Error, access_denied

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256\s+Credential=(?P<id>[^/,\s]+)/(?P<scope>(?P<day>\d{8})/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request)"
    r"\s*,\s*SignedHeaders=(?P<headers>[^,\s]+)\s*,\s*Signature=(?P<signature>[0-9a-f]{64})\s*"
)
_MOST_SKEW_SECONDS = 15 * 60


@dataclass(frozen=True)
class Signer:
    """Who signed a request, and what the signatures of its chunks follow from."""

    access_key: AccessKey
    amz_date: str
    scope: str
    signature: str
    key: bytes


def verify(call: Call, keys: AccessKeys, at: float) -> Signer:
    """Return who signed a request.

    Args:
        call: The request.
        keys: The keys that are known.
        at: Seconds since 1970.

    Raises:
        S3Error: It is not signed, or not rightly.
    """
    header = call.header("authorization")
    if header is None:
        raise access_denied()
    claim = _AUTHORIZATION.fullmatch(header.strip())
    if claim is None or claim["service"] != "s3":
        raise S3Error(400, "AuthorizationHeaderMalformed", "The authorization header that you provided is not valid.")
    access_key = keys.find(claim["id"], call.header("x-amz-security-token"), at)
    amz_date = call.header("x-amz-date") or ""
    _check_date(amz_date, claim["day"], at)
    payload = call.header("x-amz-content-sha256")
    if payload is None:
        raise S3Error(400, "InvalidRequest", "Missing required header for this request: x-amz-content-sha256")
    signed = claim["headers"].split(";")
    _check_signed_headers(call, signed)
    request = canonical_request(call, signed, payload)
    text = "\n".join(["AWS4-HMAC-SHA256", amz_date, claim["scope"], hashlib.sha256(request).hexdigest()])
    key = signing_key(access_key.secret_access_key, claim["day"], claim["region"], claim["service"])
    if not hmac.compare_digest(hmac.new(key, text.encode(), hashlib.sha256).hexdigest(), claim["signature"]):
        raise S3Error(
            403,
            "SignatureDoesNotMatch",
            "The request signature we calculated does not match the signature you provided. Check your key and signing method.",
        )
    if re.fullmatch(r"[0-9a-f]{64}", payload) and hashlib.sha256(call.body).hexdigest() != payload:
        raise S3Error(400, "XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match the body.")
    return Signer(access_key, amz_date, claim["scope"], claim["signature"], key)


def canonical_request(call: Call, signed: list[str], payload: str) -> bytes:
    """Return what the client must have hashed.

    S3 encodes the path once; the query's pairs are sorted as they are encoded.
    """
    pairs = sorted((_encoded(name), _encoded(value)) for name, value in call.query.items())
    lines = [
        call.method,
        quote(call.path, safe="/-_.~"),
        "&".join(f"{name}={value}" for name, value in pairs),
        *(f"{name}:{_header_value(call, name)}" for name in signed),
        "",
        ";".join(signed),
        payload,
    ]
    return "\n".join(lines).encode("latin-1")


def _check_date(amz_date: str, day: str, at: float) -> None:
    try:
        said = datetime.strptime(amz_date, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise S3Error(403, "AccessDenied", "AWS authentication requires a valid x-amz-date header") from None
    if abs(said.timestamp() - at) > _MOST_SKEW_SECONDS or not amz_date.startswith(day):
        raise S3Error(403, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large.")


def _check_signed_headers(call: Call, signed: list[str]) -> None:
    """Every header of S3's own that is sent must be signed, and the host."""
    sent = {name.lower() for name in call.headers if name.lower().startswith("x-amz-")} | {"host"}
    if unsigned := sent - set(signed):
        raise S3Error(403, "AccessDenied", f"There were headers present which were not signed: {sorted(unsigned)}")


def _header_value(call: Call, name: str) -> str:
    return ",".join(" ".join(str(value).split()) for value in call.headers.get_all(name, []))


def signing_key(secret: str, day: str, region: str, service: str) -> bytes:
    """Return the key of one day, derived from the secret."""
    key = f"AWS4{secret}".encode()
    for text in (day, region, service, "aws4_request"):
        key = hmac.new(key, text.encode(), hashlib.sha256).digest()
    return key


def _encoded(text: str) -> str:
    return quote(text, safe="-_.~")
