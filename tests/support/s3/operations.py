"""What each of S3's operations does with the buckets, once the caller is known and permitted."""

from __future__ import annotations

import hashlib
import re
import xml.etree.ElementTree as ElementTree
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tests.support.s3.access import AccessKey
from tests.support.s3.answer import Answer, document, element, encoder, http_date, iso, text
from tests.support.s3.call import Call
from tests.support.s3.checksums import check_checksums, claimed_checksums
from tests.support.s3.listing import Page, list_page
from tests.support.s3.objects import Condition, ObjectStore, now
from tests.support.s3.s3_error import S3Error, access_denied, precondition_failed
from tests.support.s3.stored import StoredObject

_MOST_LISTED = 1000
_MOST_KEY_BYTES = 1024
_KEPT_HEADERS = ("content-type", "cache-control", "content-disposition", "content-encoding", "content-language", "expires")


@dataclass(frozen=True)
class Request:
    """A request whose signature is right.

    Args:
        call: As it came.
        caller: Who signed it.
        data: The content of its body.
        checksums: Those that came with the body, in headers before or behind it.
    """

    call: Call
    caller: AccessKey
    data: bytes
    checksums: Mapping[str, str]

    @property
    def bucket(self) -> str:
        """The bucket that it names."""
        return self.call.bucket

    @property
    def key(self) -> str:
        """The key that it names."""
        return self.call.key

    @property
    def query(self) -> Mapping[str, str]:
        """The query, decoded."""
        return self.call.query

    @property
    def condition(self) -> Condition:
        """What the write demands."""
        return Condition(self.call.header("if-match"), self.call.header("if-none-match"))


class Operations:
    """The operations on one store."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._by_name: Mapping[str, Callable[[Request], Answer]] = {
            "ListBuckets": self._list_buckets,
            "CreateBucket": self._create_bucket,
            "DeleteBucket": self._delete_bucket,
            "HeadBucket": self._head_bucket,
            "GetBucketLocation": self._get_bucket_location,
            "GetBucketVersioning": self._get_bucket_versioning,
            "ListObjects": self._list_objects,
            "ListObjectsV2": self._list_objects_v2,
            "DeleteObjects": self._delete_objects,
            "GetObject": self._get_object,
            "HeadObject": self._get_object,
            "PutObject": self._put_object,
            "CopyObject": self._copy_object,
            "DeleteObject": self._delete_object,
            "CreateMultipartUpload": self._create_upload,
            "UploadPart": self._upload_part,
            "UploadPartCopy": self._upload_part_copy,
            "CompleteMultipartUpload": self._complete_upload,
            "AbortMultipartUpload": self._abort_upload,
            "ListParts": self._list_parts,
            "ListMultipartUploads": self._list_uploads,
        }

    def do(self, request: Request) -> Answer:
        """Do what is asked.

        Raises:
            S3Error: It cannot be done.
        """
        if len(request.key.encode()) > _MOST_KEY_BYTES:
            raise S3Error(400, "KeyTooLongError", "Your key is too long")
        operation = self._by_name.get(request.call.operation)
        if operation is None:
            raise S3Error(501, "NotImplemented", f"{request.call.method} {request.call.target} is not implemented")
        return operation(request)

    # Buckets

    def _list_buckets(self, _: Request) -> Answer:
        buckets = (
            element("Bucket", text("Name", name), text("CreationDate", iso(created)))
            for name, created in self._store.buckets().items()
        )
        return document("ListAllMyBucketsResult", element("Buckets", *buckets))

    def _create_bucket(self, request: Request) -> Answer:
        self._store.create_bucket(request.bucket)
        return Answer(200, {"Location": f"/{request.bucket}"})

    def _delete_bucket(self, request: Request) -> Answer:
        self._store.delete_bucket(request.bucket)
        return Answer(204)

    def _head_bucket(self, request: Request) -> Answer:
        self._store.check_bucket(request.bucket)
        return Answer(200, {"x-amz-bucket-region": "us-east-1"})

    def _get_bucket_location(self, request: Request) -> Answer:
        self._store.check_bucket(request.bucket)
        return document("LocationConstraint")

    def _get_bucket_versioning(self, request: Request) -> Answer:
        self._store.check_bucket(request.bucket)
        return document("VersioningConfiguration")

    # Lists

    def _list_objects(self, request: Request) -> Answer:
        marker = request.query.get("marker", "")
        page, objects = self._page(request, marker)
        keys = encoder(request.query)
        following = [keys.text("NextMarker", page.last)] if page.last is not None else []
        return document("ListBucketResult", keys.text("Marker", marker), *following, *_listed(request, page, objects))

    def _list_objects_v2(self, request: Request) -> Answer:
        start_after = request.query.get("start-after", "")
        token = request.query.get("continuation-token")
        page, objects = self._page(request, start_after if token is None else _from_token(token))
        keys = encoder(request.query)
        said = [text("KeyCount", len(page.keys) + len(page.common_prefixes))]
        if start_after:
            said.append(keys.text("StartAfter", start_after))
        if token is not None:
            said.append(text("ContinuationToken", token))
        if page.last is not None:
            said.append(text("NextContinuationToken", urlsafe_b64encode(page.last.encode()).decode()))
        return document("ListBucketResult", *said, *_listed(request, page, objects))

    def _page(self, request: Request, after: str) -> tuple[Page, list[StoredObject]]:
        query = request.query
        most = min(_number(query, "max-keys", _MOST_LISTED), _MOST_LISTED)

        def choose(keys: list[str], objects: Mapping[str, StoredObject]) -> tuple[Page, list[StoredObject]]:
            page = list_page(keys, query.get("prefix", ""), query.get("delimiter", ""), after, most)
            return page, [objects[key] for key in page.keys]

        return self._store.look(request.bucket, choose)

    # Objects

    def _get_object(self, request: Request) -> Answer:
        try:
            stored = self._store.get(request.bucket, request.key)
        except S3Error as error:
            # Who may not list does not learn whether a key exists.
            if error.code == "NoSuchKey" and not request.caller.may("s3:ListBucket", f"{request.bucket}/{request.key}"):
                raise access_denied() from error
            raise
        headers = {"ETag": f'"{stored.etag}"', "Last-Modified": http_date(stored.modified), "Accept-Ranges": "bytes"}
        _check_read(request.call, stored)
        headers |= stored.headers
        span = _range(request.call.header("range"), len(stored.data))
        if span is not None:
            headers["Content-Range"] = f"bytes {span.start}-{span.stop - 1}/{len(stored.data)}"
            return Answer(206, headers, stored.data[span.start : span.stop])
        if (request.call.header("x-amz-checksum-mode") or "").upper() == "ENABLED" and stored.checksums:
            headers |= {**stored.checksums, "x-amz-checksum-type": "FULL_OBJECT"}
        return Answer(200, headers, stored.data)

    def _put_object(self, request: Request) -> Answer:
        stored = _stored(request)
        self._store.put(request.bucket, stored, request.condition)
        return Answer(200, {"ETag": f'"{stored.etag}"', **stored.checksums})

    def _copy_object(self, request: Request) -> Answer:
        source = self._source(request)
        new_headers = (request.call.header("x-amz-metadata-directive") or "COPY").upper() == "REPLACE"
        headers = _kept_headers(request.call) if new_headers else source.headers
        etag = hashlib.md5(source.data).hexdigest()
        stored = replace(source, key=request.key, etag=etag, modified=now(), headers=headers)
        self._store.put(request.bucket, stored, request.condition)
        return document("CopyObjectResult", text("LastModified", iso(stored.modified)), text("ETag", f'"{stored.etag}"'))

    def _delete_object(self, request: Request) -> Answer:
        self._store.delete(request.bucket, request.key, Condition(if_match=request.call.header("if-match")))
        return Answer(204)

    def _delete_objects(self, request: Request) -> Answer:
        self._store.check_bucket(request.bucket)
        wanted = _parsed(request.data)
        quiet = (wanted.findtext("{*}Quiet") or "").lower() == "true"
        said = []
        for one in wanted.findall("{*}Object"):
            key, etag = one.findtext("{*}Key") or "", one.findtext("{*}ETag")
            try:
                if not request.caller.may("s3:DeleteObject", f"{request.bucket}/{key}"):
                    raise access_denied()
                self._store.delete(request.bucket, key, Condition(if_match=etag))
            except S3Error as error:
                said.append(element("Error", text("Key", key), text("Code", error.code), text("Message", error.message)))
            else:
                if not quiet:
                    said.append(element("Deleted", text("Key", key)))
        return document("DeleteResult", *said)

    def _source(self, request: Request) -> StoredObject:
        stored = self._store.get(*request.call.copy_source())
        if_match = request.call.header("x-amz-copy-source-if-match")
        if_none_match = request.call.header("x-amz-copy-source-if-none-match")
        if if_match is not None and not stored.matches(if_match):
            raise precondition_failed()
        if if_none_match is not None and stored.matches(if_none_match):
            raise precondition_failed()
        return stored

    # Multipart uploads

    def _create_upload(self, request: Request) -> Answer:
        upload = self._store.begin_upload(request.bucket, request.key, _kept_headers(request.call))
        names = (text("Bucket", request.bucket), text("Key", request.key), text("UploadId", upload.upload_id))
        return document("InitiateMultipartUploadResult", *names)

    def _upload_part(self, request: Request) -> Answer:
        part = _stored(request)
        self._store.put_part(request.bucket, request.query["uploadId"], _part_number(request), part)
        return Answer(200, {"ETag": f'"{part.etag}"', **part.checksums})

    def _upload_part_copy(self, request: Request) -> Answer:
        data = self._source(request).data
        span = _range(request.call.header("x-amz-copy-source-range"), len(data))
        data = data if span is None else data[span.start : span.stop]
        part = StoredObject(request.key, data, hashlib.md5(data).hexdigest(), now(), {}, {})
        self._store.put_part(request.bucket, request.query["uploadId"], _part_number(request), part)
        return document("CopyPartResult", text("LastModified", iso(part.modified)), text("ETag", f'"{part.etag}"'))

    def _complete_upload(self, request: Request) -> Answer:
        chosen = [
            (int(part.findtext("{*}PartNumber") or 0), part.findtext("{*}ETag") or "")
            for part in _parsed(request.data).findall("{*}Part")
        ]
        upload_id = request.query["uploadId"]
        stored = self._store.complete_upload(request.bucket, request.key, upload_id, chosen, request.condition)
        return document(
            "CompleteMultipartUploadResult",
            text("Location", f"/{request.bucket}/{request.key}"),
            text("Bucket", request.bucket),
            text("Key", request.key),
            text("ETag", f'"{stored.etag}"'),
        )

    def _abort_upload(self, request: Request) -> Answer:
        self._store.abort_upload(request.bucket, request.key, request.query["uploadId"])
        return Answer(204)

    def _list_parts(self, request: Request) -> Answer:
        upload_id = request.query["uploadId"]
        behind = _number(request.query, "part-number-marker", 0)
        most = min(_number(request.query, "max-parts", _MOST_LISTED), _MOST_LISTED)
        parts = self._store.parts(request.bucket, request.key, upload_id)
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

    def _list_uploads(self, request: Request) -> Answer:
        keys = encoder(request.query)
        uploads = (
            element(
                "Upload", keys.text("Key", upload.key), text("UploadId", upload.upload_id), text("Initiated", iso(upload.begun))
            )
            for upload in self._store.uploads(request.bucket)
            if upload.key.startswith(request.query.get("prefix", ""))
        )
        return document(
            "ListMultipartUploadsResult", text("Bucket", request.bucket), text("IsTruncated", "false"), keys.named(), *uploads
        )


def _listed(request: Request, page: Page, objects: list[StoredObject]) -> list[str]:
    query, keys = request.query, encoder(request.query)
    said = [
        text("Name", request.bucket),
        keys.text("Prefix", query.get("prefix", "")),
        text("MaxKeys", min(_number(query, "max-keys", _MOST_LISTED), _MOST_LISTED)),
        text("IsTruncated", "false" if page.last is None else "true"),
        keys.named(),
    ]
    if query.get("delimiter"):
        said.append(keys.text("Delimiter", query["delimiter"]))
    for stored in objects:
        said.append(
            element(
                "Contents",
                keys.text("Key", stored.key),
                text("LastModified", iso(stored.modified)),
                text("ETag", f'"{stored.etag}"'),
                text("Size", len(stored.data)),
                text("StorageClass", "STANDARD"),
            )
        )
    said.extend(element("CommonPrefixes", keys.text("Prefix", prefix)) for prefix in page.common_prefixes)
    return said


def _from_token(token: str) -> str:
    try:
        return urlsafe_b64decode(token.encode()).decode()
    except ValueError:
        raise S3Error(400, "InvalidArgument", "The continuation token provided is incorrect") from None


def _stored(request: Request) -> StoredObject:
    check_checksums(request.data, request.checksums, request.call.header("content-md5"))
    etag = hashlib.md5(request.data).hexdigest()
    return StoredObject(request.key, request.data, etag, now(), _kept_headers(request.call), request.checksums)


def _kept_headers(call: Call) -> dict[str, str]:
    kept = {
        name.lower(): str(value)
        for name, value in call.headers.items()
        if name.lower() in _KEPT_HEADERS or name.lower().startswith("x-amz-meta-")
    }
    # The framing of the transport is no encoding of the object.
    encodings = [part.strip() for part in kept.pop("content-encoding", "").split(",")]
    if left := ",".join(part for part in encodings if part and part != "aws-chunked"):
        kept["content-encoding"] = left
    return {"content-type": "binary/octet-stream", **kept}


def request_checksums(call: Call, trailers: Mapping[str, str]) -> dict[str, str]:
    """Return the checksums that came with a body, in headers before or behind it."""
    return claimed_checksums({**{name.lower(): str(value) for name, value in call.headers.items()}, **trailers})


def _check_read(call: Call, stored: StoredObject) -> None:
    if_match, if_none_match = call.header("if-match"), call.header("if-none-match")
    if if_match is not None and not stored.matches(if_match):
        raise precondition_failed()
    if if_none_match is not None and stored.matches(if_none_match):
        raise S3Error(304, "NotModified")


def _range(header: str | None, size: int) -> range | None:
    """Return the bytes that are asked for; None for all, also when the header means nothing to S3."""
    found = re.fullmatch(r"bytes=(\d*)-(\d*)", header or "")
    if found is None or found[1] == found[2] == "":
        return None
    if found[1]:
        span = range(int(found[1]), min(int(found[2]) + 1, size) if found[2] else size)
    else:
        span = range(max(0, size - int(found[2])), size)
    if not span:
        raise S3Error(416, "InvalidRange", "The requested range is not satisfiable")
    return span


def _part_number(request: Request) -> int:
    number = _number(request.query, "partNumber", 0)
    if not 1 <= number <= 10_000:
        raise S3Error(400, "InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive")
    return number


def _number(query: Mapping[str, str], name: str, default: int) -> int:
    try:
        return int(query.get(name) or default)
    except ValueError:
        raise S3Error(400, "InvalidArgument", f"Argument {name} must be an integer") from None


def _parsed(data: bytes) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(data)
    except ElementTree.ParseError:
        raise S3Error(400, "MalformedXML", "The XML you provided was not well-formed") from None
