"""The clients that Lakebound uses read what they wrote."""

from __future__ import annotations

import base64
import hashlib
import zlib
from concurrent.futures import ThreadPoolExecutor

import httpx
import obstore
import obstore.store as store_module
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import FileSelector, FileType
from pyiceberg.catalog.sql import SqlCatalog
from tests.support.s3.clients import arrow_filesystem, iceberg_properties, obstore_options
from tests.support.s3.running import S3Server
from tests.support.s3.signing import signed

ODD_KEYS = ("a b", "a+b", "a%20b", "a=b&c", "größe", "日本/語", "semi;colon", "quo'te\"", "<tag>", "dot.", "~x", "a//b")


def test_pyarrow_reads_what_it_wrote(s3_server: S3Server, s3_bucket: str) -> None:
    filesystem = arrow_filesystem(s3_server)
    table = pa.table({"number": list(range(10_000))})
    pq.write_table(table, f"{s3_bucket}/a b/one+1.parquet", filesystem=filesystem)
    assert pq.read_table(f"{s3_bucket}/a b/one+1.parquet", filesystem=filesystem).equals(table)
    filesystem.copy_file(f"{s3_bucket}/a b/one+1.parquet", f"{s3_bucket}/a b/two%.parquet")
    listed = filesystem.get_file_info(FileSelector(s3_bucket, recursive=True))
    files = sorted(info.path for info in listed if info.type == FileType.File)
    assert files == [f"{s3_bucket}/a b/one+1.parquet", f"{s3_bucket}/a b/two%.parquet"]
    filesystem.delete_dir(f"{s3_bucket}/a b")
    assert filesystem.get_file_info(f"{s3_bucket}/a b/one+1.parquet").type == FileType.NotFound


def test_pyiceberg_reads_what_it_wrote(s3_server: S3Server, s3_bucket: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    catalog_file = tmp_path_factory.mktemp("catalog") / "catalog.db"
    properties = {"uri": f"sqlite:///{catalog_file}", "warehouse": f"s3://{s3_bucket}/lake", **iceberg_properties(s3_server)}
    catalog = SqlCatalog("tests", **properties)
    catalog.create_namespace("shop")
    rows = pa.table({"number": list(range(100))})
    with s3_server.counters.counting() as counted:
        table = catalog.create_table("shop.orders", schema=rows.schema)
        table.append(rows)
    assert catalog.load_table("shop.orders").scan().to_arrow().equals(rows)
    written = counted.only(lambda request: request.method == "PUT").by("key_class")
    assert written == {"iceberg metadata": 2, "iceberg manifest": 1, "iceberg manifest list": 1, "data": 1}


@pytest.mark.parametrize("key", ODD_KEYS)
def test_a_key_is_decoded_once(s3_server: S3Server, s3_bucket: str, key: str) -> None:
    """By a client that signs for itself: what it sent is what the lists say, in both encodings of keys."""
    with httpx.Client(trust_env=False) as client:
        assert signed(client, s3_server, "PUT", s3_bucket, key, body=b"one").status_code == 200
        assert signed(client, s3_server, "GET", s3_bucket, key).content == b"one"
    listed = arrow_filesystem(s3_server).get_file_info(FileSelector(s3_bucket, recursive=True))
    assert f"{s3_bucket}/{key}" in [info.path for info in listed if info.type == FileType.File]


@pytest.mark.parametrize("key", [key for key in ODD_KEYS if "//" not in key])
def test_obstore_lists_odd_keys(s3_server: S3Server, s3_bucket: str, key: str) -> None:
    store = store_module.S3Store(s3_bucket, **obstore_options(s3_server))
    obstore.put(store, f"folder/{key}", b"one")
    assert bytes(obstore.get(store, f"folder/{key}").bytes()) == b"one"
    (only,) = [entry for page in obstore.list(store, "folder/") for entry in page]
    assert bytes(obstore.get(store, only["path"]).bytes()) == b"one"
    obstore.delete(store, only["path"])
    assert [entry for page in obstore.list(store) for entry in page] == []


def test_a_range_a_condition_and_a_checksum(s3_server: S3Server, s3_bucket: str) -> None:
    crc32 = base64.b64encode(zlib.crc32(b"0123456789").to_bytes(4, "big")).decode()
    with httpx.Client(trust_env=False) as client:

        def ask(method: str, body: bytes = b"", **headers: str) -> httpx.Response:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return signed(client, s3_server, method, s3_bucket, "ten", body=body, headers=named)

        assert ask("PUT", b"0123456789", x_amz_checksum_crc32="AAAAAA==").status_code == 400
        assert ask("GET").status_code == 404
        put = ask("PUT", b"0123456789", x_amz_checksum_crc32=crc32)
        etag = f'"{hashlib.md5(b"0123456789").hexdigest()}"'
        assert (put.status_code, put.headers["etag"]) == (200, etag)
        assert ask("GET", x_amz_checksum_mode="ENABLED").headers["x-amz-checksum-crc32"] == crc32
        middle = ask("GET", range="bytes=2-4", x_amz_checksum_mode="ENABLED")
        assert (middle.status_code, middle.content, middle.headers["content-range"]) == (206, b"234", "bytes 2-4/10")
        assert "x-amz-checksum-crc32" not in middle.headers
        assert ask("GET", range="bytes=-3").content == b"789"
        assert ask("GET", range="bytes=8-99").content == b"89"
        assert ask("GET", range="bytes=10-").status_code == 416
        assert ask("GET", if_none_match=etag).status_code == 304
        assert ask("GET", if_match='"other"').status_code == 412
        head = ask("HEAD")
        assert (head.content, head.headers["content-length"]) == (b"", "10")
        assert ask("PUT", b"again", if_none_match="*").status_code == 412
        assert ask("PUT", b"again", if_match='"other"').status_code == 412
        assert ask("PUT", b"again", if_match=etag).status_code == 200
        assert ask("DELETE").status_code == 204
        assert ask("DELETE").status_code == 204
        assert ask("PUT", b"again", if_match=etag).status_code == 404


def test_a_list_of_2500_keys_comes_in_pages(s3_server: S3Server, s3_bucket: str) -> None:
    store = store_module.S3Store(s3_bucket, **obstore_options(s3_server))
    keys = [f"many/{number % 5}/{number:05d}" for number in range(2_500)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: obstore.put(store, key, b""), keys))
    with s3_server.counters.counting() as counted:
        listed = [entry["path"] for page in obstore.list(store, "many/") for entry in page]
    assert listed == sorted(keys)
    assert counted.by("operation") == {"ListObjectsV2": 3}
    behind = [entry["path"] for page in obstore.list(store, "many/", offset="many/2/00002") for entry in page]
    assert behind == [key for key in sorted(keys) if key > "many/2/00002"]
    folders = obstore.list_with_delimiter(store, "many")
    assert sorted(folders["common_prefixes"]) == [f"many/{number}" for number in range(5)]
    with s3_server.counters.counting() as counted:
        arrow_filesystem(s3_server).delete_dir(f"{s3_bucket}/many")
    assert counted.by("operation")["DeleteObjects"] >= 3
    assert [entry["path"] for page in obstore.list(store, "many/") for entry in page] == []


def test_twelve_megabytes_go_up_in_parts(s3_server: S3Server, s3_bucket: str) -> None:
    data = bytes(range(256)) * (12 * 4096)
    store = store_module.S3Store(s3_bucket, **obstore_options(s3_server))
    with s3_server.counters.counting() as counted:
        obstore.put(store, "big", data, use_multipart=True, chunk_size=5 * 1024 * 1024)
    assert counted.by("operation") == {"CreateMultipartUpload": 1, "UploadPart": 3, "CompleteMultipartUpload": 1}
    with arrow_filesystem(s3_server).open_input_stream(f"{s3_bucket}/big") as stream:
        assert stream.read() == data
    assert str(obstore.head(store, "big")["e_tag"]).endswith('-3"')
    with arrow_filesystem(s3_server).open_output_stream(f"{s3_bucket}/big as well") as stream:
        stream.write(data)
    assert bytes(obstore.get(store, "big as well").bytes()) == data
