"""Who may do what: access keys, their secrets, session tokens and permissions."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol

from tests.support.s3.s3_error import S3Error


@dataclass(frozen=True)
class Permission:
    """Some actions on what begins with a prefix.

    Args:
        actions: Names as in policies (``s3:GetObject``), with ``*`` for any text.
        prefix: ``bucket/`` or ``bucket/some/folder/``; a list needs ``s3:ListBucket`` for the prefix that it asks for.
    """

    actions: tuple[str, ...]
    prefix: str = ""

    def covers(self, action: str, resource: str) -> bool:
        """Say whether the action on ``bucket/key`` is permitted."""
        return resource.startswith(self.prefix) and any(fnmatchcase(action, allowed) for allowed in self.actions)


@dataclass(frozen=True)
class AccessKey:
    """A pair of credentials.

    Args:
        access_key_id: The public part.
        secret_access_key: What requests are signed with.
        session_token: What temporary credentials must send as well.
        expires_at: Seconds since 1970; later requests are answered ExpiredToken.
        permissions: None permits everything.
    """

    access_key_id: str
    secret_access_key: str
    session_token: str | None = None
    expires_at: float | None = None
    permissions: tuple[Permission, ...] | None = None

    def may(self, action: str, resource: str) -> bool:
        """Say whether the holder may do this with ``bucket/key``."""
        return self.permissions is None or any(permission.covers(action, resource) for permission in self.permissions)


class Server(Protocol):
    """What clients are told of an S3 server, the tests' own or another.

    Attributes:
        endpoint: Its address.
        region: What requests are signed for.
        access_key: The key of its owner.
    """

    endpoint: str
    region: str
    access_key: AccessKey

    def new_bucket(self, prefix: str = "bucket") -> str:
        """Create an empty bucket; return its name."""


class AccessKeys:
    """The keys that the server knows; they can be exchanged while it runs."""

    def __init__(self, keys: Sequence[AccessKey]) -> None:
        self._lock = threading.Lock()
        self._keys = {key.access_key_id: key for key in keys}

    def put(self, key: AccessKey) -> None:
        """Add a key, or replace the one with the same id."""
        with self._lock:
            self._keys[key.access_key_id] = key

    def remove(self, access_key_id: str) -> None:
        """Forget a key."""
        with self._lock:
            self._keys.pop(access_key_id, None)

    def find(self, access_key_id: str, session_token: str | None, at: float) -> AccessKey:
        """Return the key of a request.

        Raises:
            S3Error: It is not known, or its token is wrong or too old.
        """
        with self._lock:
            key = self._keys.get(access_key_id)
        if key is None:
            raise S3Error(403, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.")
        if key.expires_at is not None and at >= key.expires_at:
            raise S3Error(400, "ExpiredToken", "The provided token has expired.")
        if key.session_token != session_token:
            raise S3Error(400, "InvalidToken", "The provided token is malformed or otherwise invalid.")
        return key
