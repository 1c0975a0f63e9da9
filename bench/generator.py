"""A producer at a steady rate, as its own process: prepared payloads, so that it costs as little CPU as it can.

Prints one JSON line at its end: records sent, seconds, and its own CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import signal
import threading
import time

from confluent_kafka import Producer
from value_formats import add_options, encoded, encoding_asked

PAYLOADS = 1000


def payload(number: int, record_bytes: int) -> bytes:
    """Return a JSON object of about ``record_bytes`` bytes."""
    body = {
        "event_id": f"{number:012d}",
        "device": f"device-{number % 97}",
        "value": number * 0.37,
        "kind": "reading",
        "pad": "",
    }
    body["pad"] = "x" * max(0, record_bytes - len(json.dumps(body)))
    return json.dumps(body).encode()


def values(record_bytes: int, *, dirty: bool) -> list[bytes]:
    """Return the values that are produced in turn; where they are dirty, one of a hundred is half an object."""
    bodies = [payload(number, record_bytes) for number in range(PAYLOADS)]
    return [body[: len(body) // 2] if dirty and number % 100 == 50 else body for number, body in enumerate(bodies)]


def main() -> None:
    """Produce and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--rate", type=int, required=True, help="records per second")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--record-bytes", type=int, default=180)
    parser.add_argument("--linger-ms", type=float, default=5)
    parser.add_argument("--dirty", action="store_true", help="one record of a hundred cannot be decoded")
    add_options(parser)
    args = parser.parse_args()
    producer = Producer(
        {"bootstrap.servers": args.bootstrap_servers, "linger.ms": args.linger_ms, "acks": "all", "enable.idempotence": True}
    )
    payloads = encoded(values(args.record_bytes, dirty=args.dirty), encoding_asked(args), args.topic)
    started, sent, tick_seconds = time.monotonic(), 0, 0.01
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    while (elapsed := time.monotonic() - started) < args.seconds and not stop.wait(tick_seconds):
        due = int(elapsed * args.rate)
        for number in range(sent, due):
            producer.produce(args.topic, payloads[number % PAYLOADS])
        sent = max(sent, due)
        producer.poll(0)
    producer.flush(30)
    print(json.dumps({"sent": sent, "seconds": time.monotonic() - started, "cpu_seconds": time.process_time()}))


if __name__ == "__main__":
    main()
