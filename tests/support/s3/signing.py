"""A client of the tests' own that signs its requests, to say to a server what other clients would not."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

import httpx

from tests.support.s3.access import AccessKey
from tests.support.s3.running import S3Server


def signed(
    client: httpx.Client,
    server: S3Server,
    method: str,
    bucket: str,
    key: str = "",
    *,
    query: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    access_key: AccessKey | None = None,
) -> httpx.Response:
    """Send a request with Signature Version 4; written from its specification, apart from the server's own code."""
    signer = access_key or server.access_key
    amz_date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    payload = hashlib.sha256(body).hexdigest()
    sent = {
        **{name.lower(): value for name, value in (headers or {}).items()},
        "host": urlsplit(server.endpoint).netloc,
        "x-amz-content-sha256": payload,
        "x-amz-date": amz_date,
    }
    if signer.session_token is not None:
        sent["x-amz-security-token"] = signer.session_token
    path = quote(f"/{bucket}/{key}", safe="/~")
    pairs = "&".join(f"{quote(name, safe='~')}={quote(value, safe='~')}" for name, value in sorted((query or {}).items()))
    names = ";".join(sorted(sent))
    lines = "".join(f"{name}:{sent[name]}\n" for name in sorted(sent))
    request = f"{method}\n{path}\n{pairs}\n{lines}\n{names}\n{payload}"
    scope = f"{amz_date[:8]}/{server.region}/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{amz_date}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    secret = f"AWS4{signer.secret_access_key}".encode()
    for part in (amz_date[:8], server.region, "s3", "aws4_request", text):
        secret = hmac.new(secret, part.encode(), hashlib.sha256).digest()
    sent["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={signer.access_key_id}/{scope}, SignedHeaders={names}, Signature={secret.hex()}"
    )
    address = f"{server.endpoint}{path}" + (f"?{pairs}" if pairs else "")
    return client.request(method, address, headers=sent, content=body)
