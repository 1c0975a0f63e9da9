"""A record whose header has any bytes as its name: Python's client takes texts alone, librdkafka beneath it takes anything."""

from __future__ import annotations

import ctypes
from pathlib import Path

import confluent_kafka

_PRODUCER, _COPY = 0, 2
_END, _TOPIC, _PARTITION, _VALUE, _FLAGS, _HEADER = 0, 1, 3, 4, 7, 9
"""Of librdkafka: its kind of client, a flag of messages, and how it tells what of a message follows."""
_ERROR_BYTES, _FLUSH_MS = 512, 60_000


def send_with_header(bootstrap_servers: str, topic: str, partition: int, value: bytes, name: bytes, content: bytes) -> None:
    """Send one record, and wait until the broker has it.

    Args:
        bootstrap_servers: The broker.
        topic: Where it goes.
        partition: Of the topic.
        value: Of the record.
        name: Of its header; no zero byte.
        content: Of its header.
    """
    (file,) = Path(confluent_kafka.__file__).parents[1].glob("confluent_kafka.libs/librdkafka*.so*")
    library, error = ctypes.CDLL(str(file)), ctypes.create_string_buffer(_ERROR_BYTES)
    library.rd_kafka_conf_new.restype = library.rd_kafka_new.restype = ctypes.c_void_p
    conf = ctypes.c_void_p(library.rd_kafka_conf_new())
    servers, size = bootstrap_servers.encode(), ctypes.c_size_t(_ERROR_BYTES)
    assert library.rd_kafka_conf_set(conf, b"bootstrap.servers", servers, error, size) == 0, error.value
    producer = ctypes.c_void_p(library.rd_kafka_new(_PRODUCER, conf, error, size))
    assert producer, error.value
    try:
        what = [_TOPIC, topic.encode(), _PARTITION, ctypes.c_int32(partition), _FLAGS, _COPY]
        what += [_VALUE, value, ctypes.c_size_t(len(value)), _HEADER, name, content, ctypes.c_ssize_t(len(content)), _END]
        assert library.rd_kafka_producev(producer, *what) == 0
        assert library.rd_kafka_flush(producer, _FLUSH_MS) == 0
    finally:
        library.rd_kafka_destroy(producer)
