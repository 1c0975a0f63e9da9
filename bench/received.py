"""An outside consumer of a target topic, as its own process: when each message was received, and of which record it is.

Imports nothing of Lakebound. Writes one line per message into a file, from memory, when it is told to end: the partition of the
target topic, the source's partition and offset, and the epoch milliseconds of the receipt. One message of ``--sample`` is kept
whole beside it.
"""

from __future__ import annotations

import argparse
import json
import signal
import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

HEADER = "lakebound_source"


def main() -> None:
    """Receive until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sample", type=int, default=200)
    args = parser.parse_args()
    consumer = Consumer(
        {
            "bootstrap.servers": args.bootstrap_servers,
            "group.id": f"received-{args.topic}",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 100,
            "fetch.min.bytes": 1,
        }
    )
    consumer.assign([TopicPartition(args.topic, partition, 0) for partition in range(args.partitions)])
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    lines: list[tuple[int, bytes, float]] = []
    kept: list[bytes] = []
    while not stop.is_set():
        message = consumer.poll(0.1)
        if message is None or message.error() is not None:
            continue
        received_ms = time.time() * 1000
        source = dict(message.headers() or ()).get(HEADER, b"")
        if len(lines) % args.sample == 0:
            kept.append(message.value())
        lines.append((message.partition(), source, received_ms))
    consumer.close()
    with args.out.open("w") as out:
        for partition, source, received_ms in lines:
            out.write(f"{partition} {source.decode().replace('/', ' ')} {received_ms:.3f}\n")
    args.out.with_suffix(".sample").write_text(json.dumps([value.decode() for value in kept]))


if __name__ == "__main__":
    main()
