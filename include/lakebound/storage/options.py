"""How each library is told to reach an object store, all from one ``StoreSpec``. What they return holds keys: never log it."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from lakebound.spec.secrets import read_secret
from lakebound.spec.warehouse import StoreSpec

RETRIES = 5
RETRY_SECONDS = 30
"""For how long a client asks again by itself: beyond, the ledger decides what was written."""

TIMEOUT_SECONDS = 20


def obstore_options(store: StoreSpec) -> dict[str, Any]:
    """Return keyword arguments of ``obstore.store.from_url`` of an S3 store.

    Args:
        store: How it is reached.

    Raises:
        MissingSecretError: A key is not where the file says.
    """
    options: dict[str, Any] = {
        "client_options": {"allow_http": _is_plain(store), "timeout": timedelta(seconds=TIMEOUT_SECONDS)},
        "retry_config": {"max_retries": RETRIES, "retry_timeout": timedelta(seconds=RETRY_SECONDS)},
        **_keys(store, {"access_key_id": "access_key_id", "secret_access_key": "secret_access_key", "session_token": "token"}),
    }
    if store.endpoint:
        options |= {"endpoint": store.endpoint, "virtual_hosted_style_request": False}
    if region := _region(store):
        options["region"] = region
    return options


def delta_options(store: StoreSpec) -> dict[str, str]:
    """Return deltalake's ``storage_options``.

    Args:
        store: How it is reached.

    Raises:
        MissingSecretError: A key is not where the file says.
    """
    options = _keys(
        store,
        {
            "access_key_id": "aws_access_key_id",
            "secret_access_key": "aws_secret_access_key",
            "session_token": "aws_session_token",
        },
    )
    if store.endpoint:
        options |= {"aws_endpoint": store.endpoint, "aws_virtual_hosted_style_request": "false"}
    if _is_plain(store):
        options["aws_allow_http"] = "true"
    if region := _region(store):
        options["aws_region"] = region
    patience = {"max_retries": str(RETRIES), "retry_timeout": f"{RETRY_SECONDS}s", "timeout": f"{TIMEOUT_SECONDS}s"}
    return {**options, **patience, "aws_conditional_put": "etag"}


def pyiceberg_options(store: StoreSpec) -> dict[str, str]:
    """Return the properties by which PyIceberg's FileIO reaches the store.

    Args:
        store: How it is reached.

    Raises:
        MissingSecretError: A key is not where the file says.
    """
    options = _keys(
        store,
        {
            "access_key_id": "s3.access-key-id",
            "secret_access_key": "s3.secret-access-key",
            "session_token": "s3.session-token",
        },
    )
    if store.endpoint:
        options |= {"s3.endpoint": store.endpoint, "s3.force-virtual-addressing": "false"}
    if region := _region(store):
        options["s3.region"] = region
    return options


def _keys(store: StoreSpec, names: dict[str, str]) -> dict[str, str]:
    return {names[field]: read_secret(ref, f"store.{field}") for field, ref in store.secrets.items()}


def _is_plain(store: StoreSpec) -> bool:
    return (store.endpoint or "").startswith("http://")


def _region(store: StoreSpec) -> str | None:
    """Return the region; clients of other stores than AWS want one, too, and do not look at it."""
    known = store.region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return known or ("us-east-1" if store.endpoint else None)
