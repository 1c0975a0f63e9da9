"""What each of S3's operations does with the buckets, once the caller is known and permitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.support.s3.answer import Answer
from tests.support.s3.bucket_operations import BUCKET_OPERATIONS
from tests.support.s3.object_operations import OBJECT_OPERATIONS
from tests.support.s3.objects import ObjectStore
from tests.support.s3.request import Request
from tests.support.s3.s3_error import S3Error
from tests.support.s3.upload_operations import UPLOAD_OPERATIONS

_MOST_KEY_BYTES = 1024
_OPERATIONS: Mapping[str, Callable[[ObjectStore, Request], Answer]] = {
    **BUCKET_OPERATIONS,
    **OBJECT_OPERATIONS,
    **UPLOAD_OPERATIONS,
}


def do(store: ObjectStore, request: Request) -> Answer:
    """Do what is asked.

    Raises:
        S3Error: It cannot be done.
    """
    if len(request.key.encode()) > _MOST_KEY_BYTES:
        raise S3Error(400, "KeyTooLongError", "Your key is too long")
    operation = _OPERATIONS.get(request.call.operation)
    if operation is None:
        raise S3Error(501, "NotImplemented", f"{request.call.method} {request.call.target} is not implemented")
    return operation(store, request)
