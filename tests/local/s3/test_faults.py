"""Each kind of fault, as a client sees it, and what the counters say."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from datetime import timedelta

import httpx
import obstore
import obstore.store as store_module
import pytest
from tests.support.s3.clients import obstore_options
from tests.support.s3.faults import Fault, conflict, slow_down
from tests.support.s3.request_log import LoggedRequest, key_class, round_trips
from tests.support.s3.running import S3Server
from tests.support.s3.signing import signed


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False, timeout=10) as opened:
        yield opened


def exists(client: httpx.Client, server: S3Server, bucket: str, key: str) -> bool:
    """Say whether there is an object."""
    return signed(client, server, "HEAD", bucket, key).status_code == 200


@pytest.mark.parametrize("after_effect", [False, True])
def test_an_error_is_answered(s3_server: S3Server, s3_bucket: str, client: httpx.Client, after_effect: bool) -> None:
    number = s3_server.faults.add(Fault("status", methods=("PUT",), key="log/*", skip=1, count=2, after_effect=after_effect))
    answers = [signed(client, s3_server, "PUT", s3_bucket, f"log/{n}").status_code for n in range(4)]
    assert answers == [200, 500, 500, 200]
    assert signed(client, s3_server, "PUT", s3_bucket, "elsewhere").status_code == 200
    assert exists(client, s3_server, s3_bucket, "log/1") == after_effect
    assert s3_server.faults.hits(number) == 2


def test_a_store_that_is_asked_too_often_says_so(s3_server: S3Server, s3_bucket: str, client: httpx.Client) -> None:
    s3_server.faults.add(slow_down(operations=("List*",)))
    s3_server.faults.add(conflict(methods=("PUT",)))
    slow = signed(client, s3_server, "GET", s3_bucket, query={"list-type": "2"})
    assert (slow.status_code, "<Code>SlowDown</Code>" in slow.text) == (503, True)
    met = signed(client, s3_server, "PUT", s3_bucket, "k", headers={"if-none-match": "*"})
    assert (met.status_code, "<Code>ConditionalRequestConflict</Code>" in met.text) == (409, True)


def test_a_clients_own_retry_overcomes_errors(s3_server: S3Server, s3_bucket: str) -> None:
    store = store_module.S3Store(s3_bucket, **obstore_options(s3_server))
    s3_server.faults.add(slow_down(methods=("PUT",), count=2))
    with s3_server.counters.counting() as counted:
        obstore.put(store, "k", b"one")
    assert counted.by("status") == {503: 2, 200: 1}


def test_a_retry_after_the_effect_meets_its_own_write(s3_server: S3Server, s3_bucket: str) -> None:
    """The outcome is unknown to the client: its retry is told that the key exists, and it was it who created the key."""
    store = store_module.S3Store(s3_bucket, **obstore_options(s3_server))
    s3_server.faults.add(Fault("status", methods=("PUT",), after_effect=True))
    with pytest.raises(obstore.exceptions.AlreadyExistsError):
        obstore.put(store, "k", b"one", mode="create")
    assert bytes(obstore.get(store, "k").bytes()) == b"one"


@pytest.mark.parametrize("after_effect", [False, True])
@pytest.mark.parametrize("kind", ["silence", "disconnect"])
def test_no_answer_comes(s3_server: S3Server, s3_bucket: str, client: httpx.Client, kind: str, after_effect: bool) -> None:
    s3_server.faults.add(Fault(kind, methods=("PUT",), after_effect=after_effect))
    client.timeout = httpx.Timeout(0.5)
    with pytest.raises(httpx.ReadTimeout if kind == "silence" else httpx.RemoteProtocolError):
        signed(client, s3_server, "PUT", s3_bucket, "k", body=b"one")
    client.timeout = httpx.Timeout(10)
    assert exists(client, s3_server, s3_bucket, "k") == after_effect


def test_obstore_asks_again_after_a_time_out(s3_server: S3Server, s3_bucket: str) -> None:
    options = obstore_options(s3_server)
    options["client_options"] = {"allow_http": True, "timeout": timedelta(seconds=0.5)}
    store = store_module.S3Store(s3_bucket, **options)
    s3_server.faults.add(Fault("silence", methods=("GET",)))
    obstore.put(store, "k", b"one")
    with s3_server.counters.counting() as counted:
        assert bytes(obstore.get(store, "k").bytes()) == b"one"
    assert counted.by("status", "fault") == {(None, "silence"): 1, (200, None): 1}


def test_half_a_body_is_read(s3_server: S3Server, s3_bucket: str, client: httpx.Client) -> None:
    signed(client, s3_server, "PUT", s3_bucket, "k", body=b"0123456789" * 1000)
    s3_server.faults.add(Fault("half body", key="k"))
    with pytest.raises(httpx.RemoteProtocolError, match="received 5000 bytes, expected 10000"):
        signed(client, s3_server, "GET", s3_bucket, "k")
    assert len(signed(client, s3_server, "GET", s3_bucket, "k").content) == 10_000


def test_requests_of_one_client_take_longer(s3_server: S3Server, s3_bucket: str, client: httpx.Client) -> None:
    number = s3_server.faults.delay(0.2, access_key_id=s3_server.access_key.access_key_id, key="slow/*")
    with s3_server.counters.counting() as counted:
        signed(client, s3_server, "PUT", s3_bucket, "slow/k")
    (request,) = counted.requests
    assert request.ended - request.began >= 0.2
    assert s3_server.faults.hits(number) == 1
    s3_server.faults.remove(number)
    signed(client, s3_server, "PUT", s3_bucket, "slow/k")
    assert s3_server.faults.hits(number) == 0


def test_connections_are_refused_for_a_time(s3_server: S3Server, s3_bucket: str, client: httpx.Client) -> None:
    signed(client, s3_server, "PUT", s3_bucket, "k", body=b"one")
    s3_server.faults.go_away(seconds=1)
    with pytest.raises(httpx.TransportError):
        signed(client, s3_server, "GET", s3_bucket, "k")
    with pytest.raises(httpx.ConnectError):
        signed(client, s3_server, "GET", s3_bucket, "k")
    store = store_module.S3Store(s3_bucket, **obstore_options(s3_server))
    assert bytes(obstore.get(store, "k").bytes()) == b"one", "its own retry lasts longer than the second of nothing"


def test_connections_hang_until_the_server_is_back(s3_server: S3Server, s3_bucket: str, client: httpx.Client) -> None:
    s3_server.faults.go_away(refuse=False)
    client.timeout = httpx.Timeout(0.5)
    with pytest.raises(httpx.ReadTimeout):
        signed(client, s3_server, "PUT", s3_bucket, "k")
    s3_server.faults.come_back()
    client.timeout = httpx.Timeout(10)
    assert not exists(client, s3_server, s3_bucket, "k"), "a request of that time has no effect"


def test_round_trips_are_those_that_follow_each_other(s3_server: S3Server, s3_bucket: str) -> None:
    store = store_module.S3Store(s3_bucket, **obstore_options(s3_server))
    obstore.put(store, "warm", b"")
    s3_server.faults.delay(0.1)
    with s3_server.counters.counting() as counted:
        threads = [threading.Thread(target=obstore.put, args=(store, f"part-{n}.parquet", b"")) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        obstore.put(store, "table/_delta_log/00000000000000000001.json", b"", mode="create")
    assert counted.total == 4
    assert counted.round_trips == 2
    assert counted.by("method", "key_class") == {("PUT", "data"): 3, ("PUT", "delta commit"): 1}


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([], 0),
        ([(0, 1), (1, 2)], 2),
        ([(0, 2), (1, 3)], 1),
        ([(0, 9), (0, 1), (1, 2), (3, 4)], 3),
    ],
)
def test_the_longest_row_of_requests_is_counted(spans: list[tuple[float, float]], expected: int) -> None:
    requests = [
        LoggedRequest(n, "GET", "GetObject", "b", "k", "a", 200, None, 0, 0, began, ended)
        for n, (began, ended) in enumerate(spans)
    ]
    assert round_trips(requests) == expected


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("lake/t/_delta_log/00000000000000000001.json", "delta commit"),
        ("lake/t/_delta_log/00000000000000000010.checkpoint.parquet", "delta log"),
        ("lake/t/part-1.parquet", "data"),
        ("lake/t/metadata/00001-x.metadata.json", "iceberg metadata"),
        ("lake/t/metadata/snap-1-x.avro", "iceberg manifest list"),
        ("lake/t/metadata/x-m0.avro", "iceberg manifest"),
        ("state/lease", "other"),
    ],
)
def test_a_key_has_a_class(key: str, expected: str) -> None:
    assert key_class(key) == expected


def test_a_new_server_finds_what_another_kept(tmp_path_factory: pytest.TempPathFactory, client: httpx.Client) -> None:
    folder = tmp_path_factory.mktemp("s3")
    first = S3Server(folder)
    try:
        bucket = first.new_bucket()
        for key in ("kept", "deleted"):
            signed(client, first, "PUT", bucket, key, body=b"line\nline", headers={"x-amz-meta-who": "me"})
        signed(client, first, "DELETE", bucket, "deleted")
    finally:
        first.stop()
    second = S3Server(folder)
    try:
        kept = signed(client, second, "GET", bucket, "kept")
        assert (kept.content, kept.headers["x-amz-meta-who"]) == (b"line\nline", "me")
        assert not exists(client, second, bucket, "deleted")
    finally:
        second.stop()


def test_a_body_that_ends_early_has_no_effect(s3_server: S3Server, s3_bucket: str, client: httpx.Client) -> None:
    """The writer is killed in the middle of its PUT."""
    whole = signed(client, s3_server, "PUT", s3_bucket, "whole", body=b"x" * 1000)
    address = httpx.URL(s3_server.endpoint)
    with socket.create_connection((address.host, address.port)) as connection:
        lines = "".join(f"{name}: {value}\r\n" for name, value in whole.request.headers.items())
        connection.sendall(f"PUT /{s3_bucket}/whole HTTP/1.1\r\n{lines}\r\n".encode() + b"y" * 500)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b"", "the server closes without an answer"
    assert signed(client, s3_server, "GET", s3_bucket, "whole").content == b"x" * 1000
