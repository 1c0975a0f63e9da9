"""Which rights an operation needs, by the names of policies."""

from __future__ import annotations

from tests.support.s3.call import Call

_ON_THE_KEY = {
    "GetObject": "s3:GetObject",
    "HeadObject": "s3:GetObject",
    "PutObject": "s3:PutObject",
    "CopyObject": "s3:PutObject",
    "CreateMultipartUpload": "s3:PutObject",
    "UploadPart": "s3:PutObject",
    "UploadPartCopy": "s3:PutObject",
    "CompleteMultipartUpload": "s3:PutObject",
    "DeleteObject": "s3:DeleteObject",
    "AbortMultipartUpload": "s3:AbortMultipartUpload",
    "ListParts": "s3:ListMultipartUploadParts",
}
_ON_THE_BUCKET = {
    "HeadBucket": "s3:ListBucket",
    "CreateBucket": "s3:CreateBucket",
    "DeleteBucket": "s3:DeleteBucket",
    "GetBucketLocation": "s3:GetBucketLocation",
    "GetBucketVersioning": "s3:GetBucketVersioning",
}
_ON_THE_PREFIX = {
    "ListObjects": "s3:ListBucket",
    "ListObjectsV2": "s3:ListBucket",
    "ListMultipartUploads": "s3:ListBucketMultipartUploads",
}


def needed_rights(call: Call) -> list[tuple[str, str]]:
    """Return the actions and resources (``bucket/key``) that a request needs.

    A batch of deletes needs the right for each key, which its operation asks for itself.
    """
    operation = call.operation
    if operation == "ListBuckets":
        return [("s3:ListAllMyBuckets", "")]
    if operation in _ON_THE_BUCKET:
        return [(_ON_THE_BUCKET[operation], f"{call.bucket}/")]
    if operation in _ON_THE_PREFIX:
        return [(_ON_THE_PREFIX[operation], f"{call.bucket}/{call.query.get('prefix', '')}")]
    if operation not in _ON_THE_KEY:
        return []
    rights = [(_ON_THE_KEY[operation], f"{call.bucket}/{call.key}")]
    if operation in ("CopyObject", "UploadPartCopy"):
        rights.append(("s3:GetObject", "/".join(call.copy_source())))
    return rights
