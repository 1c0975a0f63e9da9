"""How each client is told of the server."""

from __future__ import annotations

from urllib.parse import urlsplit

from pyarrow.fs import S3FileSystem

from tests.support.s3.access import AccessKey, Server
from tests.support.s3.running import S3Server


def delta_options(server: S3Server, key: AccessKey | None = None) -> dict[str, str]:
    """Return deltalake's ``storage_options``."""
    key = key or server.access_key
    options = {
        "aws_endpoint_url": server.endpoint,
        "aws_access_key_id": key.access_key_id,
        "aws_secret_access_key": key.secret_access_key,
        "aws_region": server.region,
        "aws_allow_http": "true",
        "aws_conditional_put": "etag",
        "aws_virtual_hosted_style_request": "false",
    }
    return options | ({} if key.session_token is None else {"aws_session_token": key.session_token})


def obstore_options(server: S3Server, key: AccessKey | None = None) -> dict[str, object]:
    """Return the keyword arguments of obstore's ``S3Store``, beside the bucket."""
    key = key or server.access_key
    options: dict[str, object] = {
        "endpoint": server.endpoint,
        "access_key_id": key.access_key_id,
        "secret_access_key": key.secret_access_key,
        "region": server.region,
        "virtual_hosted_style_request": False,
        "client_options": {"allow_http": True},
    }
    return options | ({} if key.session_token is None else {"session_token": key.session_token})


def arrow_filesystem(server: S3Server, key: AccessKey | None = None, **options: object) -> S3FileSystem:
    """Return PyArrow's file system, which PyIceberg's PyArrowFileIO uses."""
    key = key or server.access_key
    return S3FileSystem(
        access_key=key.access_key_id,
        secret_key=key.secret_access_key,
        session_token=key.session_token,
        endpoint_override=urlsplit(server.endpoint).netloc,
        scheme="http",
        region=server.region,
        **options,
    )


def iceberg_properties(server: Server, key: AccessKey | None = None) -> dict[str, str]:
    """Return the properties of a PyIceberg catalog whose tables lie on the server."""
    key = key or server.access_key
    properties = {
        "s3.endpoint": server.endpoint,
        "s3.access-key-id": key.access_key_id,
        "s3.secret-access-key": key.secret_access_key,
        "s3.region": server.region,
        "s3.force-virtual-addressing": "false",
    }
    return properties | ({} if key.session_token is None else {"s3.session-token": key.session_token})
