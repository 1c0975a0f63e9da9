"""The server decides every race of conditional writes: one writer wins, and the others know it."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import obstore
import obstore.store as store_module
import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from tests.support.s3.clients import delta_options, obstore_options
from tests.support.s3.objects import Condition, ObjectStore, now
from tests.support.s3.running import S3Server
from tests.support.s3.s3_error import S3Error
from tests.support.s3.stored import StoredObject


def at_once(threads: int, act: Callable[[int], object]) -> list[object]:
    """Return what ``act`` of each number returned; all begin at the same moment."""
    barrier = threading.Barrier(threads)

    def wait_and_act(number: int) -> object:
        barrier.wait()
        return act(number)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(wait_and_act, range(threads)))


@pytest.mark.parametrize("delay_seconds", [0.0, 0.03])
def test_one_of_sixteen_creates_a_key(s3_server: S3Server, s3_bucket: str, delay_seconds: float) -> None:
    if delay_seconds:
        s3_server.faults.delay(delay_seconds)
    store = store_module.S3Store(s3_bucket, **obstore_options(s3_server))
    for number in range(20):
        key = f"log/{number}"

        def create(writer: int, key: str = key) -> int | None:
            try:
                obstore.put(store, key, f"writer {writer}".encode(), mode="create")
            except obstore.exceptions.AlreadyExistsError:
                return None
            return writer

        winners = [winner for winner in at_once(16, create) if winner is not None]
        assert len(winners) == 1
        assert bytes(obstore.get(store, key).bytes()) == f"writer {winners[0]}".encode()


@pytest.mark.parametrize("delay_seconds", [0.0, 0.03])
def test_one_of_eight_swaps_what_it_has_read(s3_server: S3Server, s3_bucket: str, delay_seconds: float) -> None:
    if delay_seconds:
        s3_server.faults.delay(delay_seconds)
    store = store_module.S3Store(s3_bucket, **obstore_options(s3_server))
    tag = obstore.put(store, "lease", b"nobody")["e_tag"]
    for number in range(10):

        def swap(writer: int, number: int = number, tag: str = tag) -> str | None:
            try:
                return str(obstore.put(store, "lease", f"{number} {writer}".encode(), mode={"e_tag": tag})["e_tag"])
            except obstore.exceptions.PreconditionError:
                return None

        winners = [winner for winner in at_once(8, swap) if winner is not None]
        assert len(winners) == 1
        tag = winners[0]


@pytest.mark.parametrize("condition", [{"if_none_match": "*"}, {"if_match": "*"}])
@pytest.mark.parametrize("write", ["put", "complete"])
def test_nobody_writes_between_a_check_and_its_write(condition: dict[str, str], write: str) -> None:
    """Each of two writers waits, when its condition holds, for the other to come as far; the lock does not let it."""
    store = ObjectStore()
    store.create_bucket("bucket")
    both_checked = threading.Barrier(2)
    if "if_match" in condition:
        store.put("bucket", stored("first"), Condition())
        condition = {"if_match": store.get("bucket", "key").etag}

    class Waiting(Condition):
        def check(self, current: StoredObject | None) -> None:
            super().check(current)
            with suppress(threading.BrokenBarrierError):
                both_checked.wait(0.5)

    def act(writer: int) -> str | None:
        new = stored(f"writer {writer}")
        try:
            if write == "put":
                store.put("bucket", new, Waiting(**condition))
            else:
                upload = store.begin_upload("bucket", "key", {}).upload_id
                store.put_part("bucket", upload, 1, new)
                store.complete_upload("bucket", "key", upload, [(1, new.etag)], Waiting(**condition))
        except S3Error as error:
            return error.code
        return None

    assert sorted(map(str, at_once(2, act))) == ["None", "PreconditionFailed"]


def stored(text: str) -> StoredObject:
    """Return an object of one text."""
    return StoredObject("key", text.encode(), hashlib.md5(text.encode()).hexdigest(), now(), {}, {})


def test_no_appended_row_is_lost(s3_server: S3Server, s3_bucket: str) -> None:
    """Eight writers append five times each to one Delta table, each at its own pace."""
    uri, options = f"s3://{s3_bucket}/table", delta_options(s3_server)
    write_deltalake(
        uri, pa.table({"writer": pa.array([], pa.int64()), "number": pa.array([], pa.int64())}), storage_options=options
    )

    patient = CommitProperties(max_commit_retries=1000)  # on a busy machine one may lose more races than the default of 15

    def append(writer: int) -> None:
        for number in range(5):
            row = pa.table({"writer": [writer], "number": [number]})
            write_deltalake(uri, row, mode="append", storage_options=options, commit_properties=patient)

    with s3_server.counters.counting() as counted:
        at_once(8, append)
    table = DeltaTable(uri, storage_options=options)
    assert table.version() == 40
    rows = table.to_pyarrow_table().to_pylist()
    assert sorted((row["writer"], row["number"]) for row in rows) == [(w, n) for w in range(8) for n in range(5)]
    commits = counted.only(lambda request: request.key_class == "delta commit" and request.method == "PUT")
    won = [request.key for request in commits.requests if request.status == 200]
    assert len(won) == len(set(won)) == 40
    assert commits.by("status")[412] > 0, "there was no race"
