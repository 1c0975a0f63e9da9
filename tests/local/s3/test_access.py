"""Requests are refused when their signature is wrong, their credentials are too old, or their holder lacks the right."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import httpx
import obstore
import obstore.store as store_module
import pytest
from tests.support.s3.access import AccessKey, Permission
from tests.support.s3.clients import arrow_filesystem, obstore_options
from tests.support.s3.running import S3Server
from tests.support.s3.signing import signed


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False) as opened:
        yield opened


def code(answer: httpx.Response) -> tuple[int, str]:
    """Return the status and S3's name of the error."""
    return answer.status_code, answer.text.partition("<Code>")[2].partition("</Code>")[0]


def test_a_signature_is_verified(s3_server: S3Server, s3_bucket: str, client: httpx.Client) -> None:
    wrong = replace(s3_server.access_key, secret_access_key="wrong")
    unknown = replace(s3_server.access_key, access_key_id="UNKNOWN")
    assert code(signed(client, s3_server, "PUT", s3_bucket, "k", access_key=wrong)) == (403, "SignatureDoesNotMatch")
    assert code(signed(client, s3_server, "PUT", s3_bucket, "k", access_key=unknown)) == (403, "InvalidAccessKeyId")
    assert code(client.put(f"{s3_server.endpoint}/{s3_bucket}/k")) == (403, "AccessDenied")
    right = signed(client, s3_server, "PUT", s3_bucket, "k", body=b"right")
    assert right.status_code == 200
    replayed = dict(right.request.headers)
    assert code(client.put(right.request.url, headers=replayed, content=b"wrong")) == (400, "XAmzContentSHA256Mismatch")
    elsewhere = str(right.request.url) + "2"
    assert code(client.put(elsewhere, headers=replayed, content=b"right")) == (403, "SignatureDoesNotMatch")


@pytest.mark.parametrize("of", ["obstore", "pyarrow"])
def test_clients_see_a_wrong_signature(s3_server: S3Server, s3_bucket: str, of: str) -> None:
    wrong = replace(s3_server.access_key, secret_access_key="wrong")
    if of == "obstore":
        with pytest.raises(obstore.exceptions.PermissionDeniedError, match="SignatureDoesNotMatch"):
            obstore.put(store_module.S3Store(s3_bucket, **obstore_options(s3_server, wrong)), "k", b"")
    else:
        with pytest.raises(OSError, match="SIGNATURE_DOES_NOT_MATCH"):
            arrow_filesystem(s3_server, wrong).open_output_stream(f"{s3_bucket}/k").close()


def test_a_token_expires_and_is_renewed(s3_server: S3Server, s3_bucket: str, client: httpx.Client) -> None:
    key = s3_server.put_access_key(AccessKey("TEMPORARY", "secret", "token-1", time.time() + 600))
    try:
        assert signed(client, s3_server, "PUT", s3_bucket, "k", access_key=key).status_code == 200
        without = replace(key, session_token=None)
        assert code(signed(client, s3_server, "PUT", s3_bucket, "k", access_key=without)) == (400, "InvalidToken")
        s3_server.put_access_key(replace(key, expires_at=time.time()))
        assert code(signed(client, s3_server, "PUT", s3_bucket, "k", access_key=key)) == (400, "ExpiredToken")
        renewed = s3_server.put_access_key(replace(key, session_token="token-2"))
        assert signed(client, s3_server, "PUT", s3_bucket, "k", access_key=renewed).status_code == 200
    finally:
        s3_server.remove_access_key(key.access_key_id)
    assert code(signed(client, s3_server, "PUT", s3_bucket, "k", access_key=key)) == (403, "InvalidAccessKeyId")


def test_a_right_is_for_a_prefix(s3_server: S3Server, s3_bucket: str, client: httpx.Client) -> None:
    rights = (
        Permission(("s3:GetObject", "s3:PutObject"), f"{s3_bucket}/mine/"),
        Permission(("s3:ListBucket",), f"{s3_bucket}/mine/"),
        Permission(("s3:GetObject",), f"{s3_bucket}/read/"),
    )
    key = s3_server.put_access_key(AccessKey("LIMITED", "secret", permissions=rights))
    denied = (403, "AccessDenied")

    def ask(method: str, name: str = "", **more: object) -> tuple[int, str]:
        return code(signed(client, s3_server, method, s3_bucket, name, access_key=key, **more))  # type: ignore[arg-type]

    assert ask("PUT", "mine/a") == (200, "")
    assert ask("GET", "mine/a") == (200, "")
    assert ask("GET", "mine/b") == (404, "NoSuchKey")
    assert ask("GET", "read/b") == denied, "who may not list does not learn whether it exists"
    assert ask("DELETE", "mine/a") == denied
    assert ask("PUT", "other/a") == denied
    assert ask("GET", query={"list-type": "2", "prefix": "mine/"}) == (200, "")
    assert ask("GET", query={"list-type": "2"}) == denied
    assert ask("POST", "mine/a", query={"uploads": ""}) == (200, "")
    assert ask("PUT", "mine/c", headers={"x-amz-copy-source": f"/{s3_bucket}/mine/a"}) == (200, "")
    assert ask("PUT", "mine/c", headers={"x-amz-copy-source": f"/{s3_bucket}/other/a"}) == denied
    body = b"<Delete><Object><Key>mine/a</Key></Object></Delete>"
    answer = signed(client, s3_server, "POST", s3_bucket, access_key=key, query={"delete": ""}, body=body)
    assert (answer.status_code, "AccessDenied" in answer.text) == (200, True)
    assert signed(client, s3_server, "GET", s3_bucket, "mine/a").status_code == 200
    s3_server.remove_access_key(key.access_key_id)
