"""Operations on multipart uploads."""

from __future__ import annotations

import hashlib

from tests.support.s3.answer import Answer, document, element, encoder, iso, text
from tests.support.s3.object_operations import copied_object
from tests.support.s3.objects import ObjectStore, now
from tests.support.s3.request import Request, byte_range, kept_headers, number_of, parsed_body, stored_object
from tests.support.s3.s3_error import S3Error
from tests.support.s3.stored import StoredObject

_MOST_LISTED = 1000


def _create_upload(store: ObjectStore, request: Request) -> Answer:
    upload = store.begin_upload(request.bucket, request.key, kept_headers(request.call))
    names = (text("Bucket", request.bucket), text("Key", request.key), text("UploadId", upload.upload_id))
    return document("InitiateMultipartUploadResult", *names)


def _upload_part(store: ObjectStore, request: Request) -> Answer:
    part = stored_object(request)
    store.put_part(request.bucket, request.query["uploadId"], _part_number(request), part)
    return Answer(200, {"ETag": f'"{part.etag}"', **part.checksums})


def _upload_part_copy(store: ObjectStore, request: Request) -> Answer:
    data = copied_object(store, request).data
    span = byte_range(request.call.header("x-amz-copy-source-range"), len(data))
    data = data if span is None else data[span.start : span.stop]
    part = StoredObject(request.key, data, hashlib.md5(data).hexdigest(), now(), {}, {})
    store.put_part(request.bucket, request.query["uploadId"], _part_number(request), part)
    return document("CopyPartResult", text("LastModified", iso(part.modified)), text("ETag", f'"{part.etag}"'))


def _complete_upload(store: ObjectStore, request: Request) -> Answer:
    chosen = [
        (int(part.findtext("{*}PartNumber") or 0), part.findtext("{*}ETag") or "")
        for part in parsed_body(request.data).findall("{*}Part")
    ]
    upload_id = request.query["uploadId"]
    stored = store.complete_upload(request.bucket, request.key, upload_id, chosen, request.condition)
    return document(
        "CompleteMultipartUploadResult",
        text("Location", f"/{request.bucket}/{request.key}"),
        text("Bucket", request.bucket),
        text("Key", request.key),
        text("ETag", f'"{stored.etag}"'),
    )


def _abort_upload(store: ObjectStore, request: Request) -> Answer:
    store.abort_upload(request.bucket, request.key, request.query["uploadId"])
    return Answer(204)


def _list_parts(store: ObjectStore, request: Request) -> Answer:
    upload_id = request.query["uploadId"]
    behind = number_of(request.query, "part-number-marker", 0)
    most = min(number_of(request.query, "max-parts", _MOST_LISTED), _MOST_LISTED)
    parts = store.parts(request.bucket, request.key, upload_id)
    numbers = [number for number in parts if number > behind]
    more = len(numbers) > most
    listed = (
        element(
            "Part",
            text("PartNumber", number),
            text("LastModified", iso(parts[number].modified)),
            text("ETag", f'"{parts[number].etag}"'),
            text("Size", len(parts[number].data)),
        )
        for number in numbers[:most]
    )
    return document(
        "ListPartsResult",
        text("Bucket", request.bucket),
        encoder(request.query).text("Key", request.key),
        text("UploadId", upload_id),
        text("MaxParts", most),
        text("IsTruncated", "true" if more else "false"),
        *([text("NextPartNumberMarker", numbers[most - 1])] if more else []),
        *listed,
    )


def _list_uploads(store: ObjectStore, request: Request) -> Answer:
    keys = encoder(request.query)
    uploads = (
        element(
            "Upload", keys.text("Key", upload.key), text("UploadId", upload.upload_id), text("Initiated", iso(upload.begun))
        )
        for upload in store.uploads(request.bucket)
        if upload.key.startswith(request.query.get("prefix", ""))
    )
    return document(
        "ListMultipartUploadsResult", text("Bucket", request.bucket), text("IsTruncated", "false"), keys.named(), *uploads
    )


def _part_number(request: Request) -> int:
    number = number_of(request.query, "partNumber", 0)
    if not 1 <= number <= 10_000:
        raise S3Error(400, "InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive")
    return number


UPLOAD_OPERATIONS = {
    "CreateMultipartUpload": _create_upload,
    "UploadPart": _upload_part,
    "UploadPartCopy": _upload_part_copy,
    "CompleteMultipartUpload": _complete_upload,
    "AbortMultipartUpload": _abort_upload,
    "ListParts": _list_parts,
    "ListMultipartUploads": _list_uploads,
}
