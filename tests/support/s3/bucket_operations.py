"""Operations on buckets, and their lists."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence

from tests.support.s3.answer import Answer, document, element, encoder, iso, text
from tests.support.s3.listing import Page, list_page
from tests.support.s3.objects import ObjectStore
from tests.support.s3.request import Request, number_of
from tests.support.s3.s3_error import S3Error
from tests.support.s3.stored import StoredObject

_MOST_LISTED = 1000


def _list_buckets(store: ObjectStore, _: Request) -> Answer:
    buckets = (
        element("Bucket", text("Name", name), text("CreationDate", iso(created))) for name, created in store.buckets().items()
    )
    return document("ListAllMyBucketsResult", element("Buckets", *buckets))


def _create_bucket(store: ObjectStore, request: Request) -> Answer:
    store.create_bucket(request.bucket)
    return Answer(200, {"Location": f"/{request.bucket}"})


def _delete_bucket(store: ObjectStore, request: Request) -> Answer:
    store.delete_bucket(request.bucket)
    return Answer(204)


def _head_bucket(store: ObjectStore, request: Request) -> Answer:
    store.check_bucket(request.bucket)
    return Answer(200, {"x-amz-bucket-region": "us-east-1"})


def _get_bucket_location(store: ObjectStore, request: Request) -> Answer:
    store.check_bucket(request.bucket)
    return document("LocationConstraint")


def _get_bucket_versioning(store: ObjectStore, request: Request) -> Answer:
    store.check_bucket(request.bucket)
    return document("VersioningConfiguration")


def _list_objects(store: ObjectStore, request: Request) -> Answer:
    marker = request.query.get("marker", "")
    page, objects = _page(store, request, marker)
    keys = encoder(request.query)
    following = [keys.text("NextMarker", page.last)] if page.last is not None else []
    return document("ListBucketResult", keys.text("Marker", marker), *following, *_listed(request, page, objects))


def _list_objects_v2(store: ObjectStore, request: Request) -> Answer:
    start_after = request.query.get("start-after", "")
    token = request.query.get("continuation-token")
    page, objects = _page(store, request, start_after if token is None else _from_token(token))
    keys = encoder(request.query)
    said = [text("KeyCount", len(page.keys) + len(page.common_prefixes))]
    if start_after:
        said.append(keys.text("StartAfter", start_after))
    if token is not None:
        said.append(text("ContinuationToken", token))
    if page.last is not None:
        said.append(text("NextContinuationToken", urlsafe_b64encode(page.last.encode()).decode()))
    return document("ListBucketResult", *said, *_listed(request, page, objects))


def _page(store: ObjectStore, request: Request, after: str) -> tuple[Page, list[StoredObject]]:
    query = request.query
    most = min(number_of(query, "max-keys", _MOST_LISTED), _MOST_LISTED)

    def choose(keys: Sequence[str], objects: Mapping[str, StoredObject]) -> tuple[Page, list[StoredObject]]:
        page = list_page(keys, query.get("prefix", ""), query.get("delimiter", ""), after, most)
        return page, [objects[key] for key in page.keys]

    return store.look(request.bucket, choose)


def _listed(request: Request, page: Page, objects: list[StoredObject]) -> list[str]:
    query, keys = request.query, encoder(request.query)
    said = [
        text("Name", request.bucket),
        keys.text("Prefix", query.get("prefix", "")),
        text("MaxKeys", min(number_of(query, "max-keys", _MOST_LISTED), _MOST_LISTED)),
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


BUCKET_OPERATIONS = {
    "ListBuckets": _list_buckets,
    "CreateBucket": _create_bucket,
    "DeleteBucket": _delete_bucket,
    "HeadBucket": _head_bucket,
    "GetBucketLocation": _get_bucket_location,
    "GetBucketVersioning": _get_bucket_versioning,
    "ListObjects": _list_objects,
    "ListObjectsV2": _list_objects_v2,
}
