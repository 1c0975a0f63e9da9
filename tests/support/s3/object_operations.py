"""Operations on objects."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from tests.support.s3.answer import Answer, document, element, http_date, iso, text
from tests.support.s3.call import Call
from tests.support.s3.objects import Condition, ObjectStore, now
from tests.support.s3.request import Request, byte_range, kept_headers, parsed_body, stored_object
from tests.support.s3.s3_error import S3Error, access_denied, precondition_failed
from tests.support.s3.stored import StoredObject


def _get_object(store: ObjectStore, request: Request) -> Answer:
    try:
        stored = store.get(request.bucket, request.key)
    except S3Error as error:
        # Who may not list does not learn whether a key exists.
        if error.code == "NoSuchKey" and not request.caller.may("s3:ListBucket", f"{request.bucket}/{request.key}"):
            raise access_denied() from error
        raise
    headers = {"ETag": f'"{stored.etag}"', "Last-Modified": http_date(stored.modified), "Accept-Ranges": "bytes"}
    _check_read(request.call, stored)
    headers |= stored.headers
    span = byte_range(request.call.header("range"), len(stored.data))
    if span is not None:
        headers["Content-Range"] = f"bytes {span.start}-{span.stop - 1}/{len(stored.data)}"
        return Answer(206, headers, stored.data[span.start : span.stop])
    if (request.call.header("x-amz-checksum-mode") or "").upper() == "ENABLED" and stored.checksums:
        headers |= {**stored.checksums, "x-amz-checksum-type": "FULL_OBJECT"}
    return Answer(200, headers, stored.data)


def _put_object(store: ObjectStore, request: Request) -> Answer:
    stored = stored_object(request)
    store.put(request.bucket, stored, request.condition)
    return Answer(200, {"ETag": f'"{stored.etag}"', **stored.checksums})


def _copy_object(store: ObjectStore, request: Request) -> Answer:
    source = copied_object(store, request)
    new_headers = (request.call.header("x-amz-metadata-directive") or "COPY").upper() == "REPLACE"
    headers = kept_headers(request.call) if new_headers else source.headers
    etag = hashlib.md5(source.data).hexdigest()
    stored = replace(source, key=request.key, etag=etag, modified=now(), headers=headers)
    store.put(request.bucket, stored, request.condition)
    return document("CopyObjectResult", text("LastModified", iso(stored.modified)), text("ETag", f'"{stored.etag}"'))


def _delete_object(store: ObjectStore, request: Request) -> Answer:
    store.delete(request.bucket, request.key, Condition(if_match=request.call.header("if-match")))
    return Answer(204)


def _delete_objects(store: ObjectStore, request: Request) -> Answer:
    store.check_bucket(request.bucket)
    wanted = parsed_body(request.data)
    quiet = (wanted.findtext("{*}Quiet") or "").lower() == "true"
    said = []
    for one in wanted.findall("{*}Object"):
        key, etag = one.findtext("{*}Key") or "", one.findtext("{*}ETag")
        try:
            if not request.caller.may("s3:DeleteObject", f"{request.bucket}/{key}"):
                raise access_denied()
            store.delete(request.bucket, key, Condition(if_match=etag))
        except S3Error as error:
            said.append(element("Error", text("Key", key), text("Code", error.code), text("Message", error.message)))
        else:
            if not quiet:
                said.append(element("Deleted", text("Key", key)))
    return document("DeleteResult", *said)


def copied_object(store: ObjectStore, request: Request) -> StoredObject:
    """Return what the request wants to be copied, if it is as the request demands."""
    stored = store.get(*request.call.copy_source())
    if_match = request.call.header("x-amz-copy-source-if-match")
    if_none_match = request.call.header("x-amz-copy-source-if-none-match")
    if if_match is not None and not stored.matches(if_match):
        raise precondition_failed()
    if if_none_match is not None and stored.matches(if_none_match):
        raise precondition_failed()
    return stored


def _check_read(call: Call, stored: StoredObject) -> None:
    if_match, if_none_match = call.header("if-match"), call.header("if-none-match")
    if if_match is not None and not stored.matches(if_match):
        raise precondition_failed()
    if if_none_match is not None and stored.matches(if_none_match):
        raise S3Error(304, "NotModified")


OBJECT_OPERATIONS = {
    "GetObject": _get_object,
    "HeadObject": _get_object,
    "PutObject": _put_object,
    "CopyObject": _copy_object,
    "DeleteObject": _delete_object,
    "DeleteObjects": _delete_objects,
}
