"""How each library is told to reach an object store, all from one ``StoreSpec``. What they return holds keys: never log it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from lakebound.spec.secrets import read_warehouse_secret
from lakebound.spec.warehouse import StoreSpec

RETRIES = 5
RETRY_SECONDS = 30
"""For how long a client asks again by itself: beyond, the ledger decides what was written."""

TIMEOUT_SECONDS = 20


_OBSTORE = {
    "access_key_id": "access_key_id",
    "secret_access_key": "secret_access_key",
    "session_token": "token",
    "endpoint": "endpoint",
    "region": "region",
}
_DELTA = {
    "access_key_id": "aws_access_key_id",
    "secret_access_key": "aws_secret_access_key",
    "session_token": "aws_session_token",
    "endpoint": "aws_endpoint",
    "region": "aws_region",
}
_PYICEBERG = {
    "access_key_id": "s3.access-key-id",
    "secret_access_key": "s3.secret-access-key",
    "session_token": "s3.session-token",
    "endpoint": "s3.endpoint",
    "region": "s3.region",
}


def obstore_options(store: StoreSpec) -> dict[str, Any]:
    """Return keyword arguments of ``obstore.store.from_url`` of an S3 store.

    Args:
        store: How it is reached.

    Raises:
        MissingSecretError: A key is not where the file says.
    """
    return {
        "client_options": {"allow_http": _is_plain(store), "timeout": timedelta(seconds=TIMEOUT_SECONDS)},
        "retry_config": {"max_retries": RETRIES, "retry_timeout": timedelta(seconds=RETRY_SECONDS)},
        **_named(store, _OBSTORE),
        **({"virtual_hosted_style_request": False} if store.endpoint else {}),
    }


def delta_options(store: StoreSpec) -> dict[str, str]:
    """Return deltalake's ``storage_options``.

    Args:
        store: How it is reached.

    Raises:
        MissingSecretError: A key is not where the file says.
    """
    return {
        **_named(store, _DELTA),
        **({"aws_virtual_hosted_style_request": "false"} if store.endpoint else {}),
        **({"aws_allow_http": "true"} if _is_plain(store) else {}),
        "max_retries": str(RETRIES),
        "retry_timeout": f"{round(RETRY_SECONDS * 1000)}ms",  # a fraction of a second is not read
        "timeout": f"{round(TIMEOUT_SECONDS * 1000)}ms",
        "aws_conditional_put": "etag",
    }


def pyiceberg_options(store: StoreSpec) -> dict[str, str]:
    """Return the properties by which PyIceberg's FileIO reaches the store.

    Args:
        store: How it is reached.

    Raises:
        MissingSecretError: A key is not where the file says.
    """
    return {**_named(store, _PYICEBERG), **({"s3.force-virtual-addressing": "false"} if store.endpoint else {})}


def _named(store: StoreSpec, names: Mapping[str, str]) -> dict[str, str]:
    """Return keys, endpoint and region, as far as they are known, under the names that a library has for them."""
    known = {field: read_warehouse_secret(ref, f"store.{field}") for field, ref in store.secrets.items()}
    known |= {field: value for field, value in (("endpoint", store.endpoint), ("region", _region(store))) if value}
    return {names[field]: value for field, value in known.items()}


def _is_plain(store: StoreSpec) -> bool:
    return (store.endpoint or "").startswith("http://")


def _region(store: StoreSpec) -> str | None:
    """Return the region; clients of other stores than AWS want one, too, and do not look at it."""
    known = store.region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return known or ("us-east-1" if store.endpoint else None)
