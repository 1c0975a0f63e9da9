"""Fill a topic as fast as it goes, for the drain: records that do not repeat soon, so that files are as large as in life."""

from __future__ import annotations

import argparse
import json
import random

from confluent_kafka import Producer
from generator import payload
from value_formats import add_options, encoded, encoding_asked

PAYLOADS = 100_000


def payloads(record_bytes: int = 180) -> list[bytes]:
    """Return the values that are produced in turn; the same at each call."""
    chance = random.Random(1)
    made = []
    for number in range(PAYLOADS):
        body = json.loads(payload(number, record_bytes))
        body["pad"] = chance.randbytes(len(body["pad"])).hex()[: len(body["pad"])]
        made.append(json.dumps(body).encode())
    return made


def main() -> None:
    """Produce, the partitions in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--records", type=int, required=True)
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--record-bytes", type=int, default=180)
    add_options(parser)
    args = parser.parse_args()
    producer = Producer(
        {
            "bootstrap.servers": args.bootstrap_servers,
            "linger.ms": 20,
            "enable.idempotence": True,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 500_000,
        }
    )
    values = encoded(payloads(args.record_bytes), encoding_asked(args), args.topic)
    for number in range(args.records):
        while True:
            try:
                producer.produce(args.topic, values[number % PAYLOADS], partition=number % args.partitions)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 10_000 == 0:
            producer.poll(0)
    if producer.flush(120):
        raise SystemExit("the broker did not take all records within two minutes")


if __name__ == "__main__":
    main()
