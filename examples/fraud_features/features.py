"""Sends card payments, reads the features of a card back as a scoring service does, and measures from event to feature.

``measure`` sends payments at a steady rate. Twenty a second are of cards that nobody else uses; Redis tells (keyspace
notifications) when the first counter of such a card appears, and the time since the payment was handed to Kafka's client is
the sample. Nothing of it is measured inside of the pipeline.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import threading
import time
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from statistics import quantiles

import redis
from confluent_kafka import Producer

STORE = "velocity"
WINDOWS = {"1m": 60, "1h": 3600, "24h": 86_400}
PROBES_PER_SECOND = 20
WARM_UP_SECONDS = 20.0
START_SECONDS = 180.0


def features_of(held: Mapping[bytes, bytes], now: float) -> dict[str, int]:
    """Return the features of a card: count and sum of each window, as of now.

    Args:
        held: The hash ``velocity:<card>``; empty for a card that has none.
        now: In seconds since 1970.
    """
    found = {f"{what}_{window}": 0 for window in WINDOWS for what in ("count", "amount_cents")}
    for field, value in held.items():
        window, begin, what = field.decode().split(":")
        if int(begin) > now - WINDOWS[window]:
            found[f"{what}_{window}"] += int(value)
    return found


def score(features: Mapping[str, int]) -> float:
    """Return how unusual the newest payments of a card are, from 0 to 1: a stand-in for a model."""
    often = features["count_1m"] / max(features["count_1h"] / 60, 1.0)
    return min(1.0, often / 10)


class Arrivals(threading.Thread):
    """Notes when the counters of the cards that are waited for are there.

    It asks for these alone, every two milliseconds: to be told of every change would take Python more than a core.
    """

    def __init__(self, client: redis.Redis) -> None:
        super().__init__(daemon=True)
        self._client = client
        self._waited_for: deque[str] = deque()
        self.at: dict[str, float] = {}

    def wait_for(self, card: str) -> None:
        """Look for a card from now on."""
        self._waited_for.append(card)

    def run(self) -> None:
        """Look until the process ends."""
        while True:
            cards = list(self._waited_for)
            with self._client.pipeline(transaction=False) as asked:
                for card in cards:
                    asked.exists(f"{STORE}:{card}")
                found = asked.execute() if cards else []
            for card, is_there in zip(cards, found, strict=True):
                if is_there:
                    self.at[card] = time.perf_counter()
                    self._waited_for.remove(card)
            time.sleep(0.002)


def send(producer: Producer, card: str) -> None:
    """Send a payment of a card."""
    body = {"card_id": card, "amount_cents": random.randrange(100, 20_000), "paid_at": datetime.now(UTC).isoformat()}
    producer.produce("card_payments", json.dumps(body), card)


def wait_for_stream(arrivals: Arrivals, producer: Producer, card: str) -> None:
    """Send one payment, and return when its feature is there: the stream has started."""
    send(producer, card)
    producer.flush(30)
    arrivals.wait_for(card)
    deadline = time.perf_counter() + START_SECONDS
    while card not in arrivals.at:
        assert time.perf_counter() < deadline, f"the stream gave no feature within {START_SECONDS:.0f} s"
        time.sleep(0.05)


def measure(client: redis.Redis, producer: Producer, rate: int, seconds: float) -> list[float]:
    """Return the milliseconds from each probe's payment to its feature.

    Args:
        client: Of Redis.
        producer: Of Kafka.
        rate: Payments per second.
        seconds: How long is measured, after the warm-up.
    """
    arrivals, sent, run = Arrivals(client), {}, f"{os.getpid()}-{time.time_ns()}"
    arrivals.start()
    wait_for_stream(arrivals, producer, f"probe-{run}-first")
    began, number = time.perf_counter(), 0
    while (now := time.perf_counter()) < began + WARM_UP_SECONDS + seconds:
        while number < (now - began) * rate:
            is_probe = number % (rate // PROBES_PER_SECOND) == 0
            card = f"probe-{run}-{number}" if is_probe else f"card-{random.randrange(2000)}"
            if is_probe and now > began + WARM_UP_SECONDS:
                sent[card] = time.perf_counter()
                arrivals.wait_for(card)
            send(producer, card)
            number += 1
        producer.poll(0)
        time.sleep(0.002)
    producer.flush(30)
    deadline = time.perf_counter() + 30
    while not all(card in arrivals.at for card in sent) and time.perf_counter() < deadline:
        time.sleep(0.05)
    lacking = [card for card in sent if card not in arrivals.at]
    assert not lacking, f"{len(lacking)} of {len(sent)} payments gave no feature within 30 s"
    return [(arrivals.at[card] - at) * 1000 for card, at in sent.items()]


def main() -> None:
    """Measure, or score a card."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("do", choices=["measure", "score"])
    parser.add_argument("--card", default="card-17")
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=30.0)
    given = parser.parse_args()
    client = redis.Redis(port=int(os.environ.get("LAKEBOUND_REDIS_PORT", "6399")))
    if given.do == "score":
        found = features_of(client.hgetall(f"{STORE}:{given.card}"), time.time())
        print(json.dumps({"card": given.card, "score": score(found), **found}))
        return
    producer = Producer({"bootstrap.servers": os.environ["LAKEBOUND_KAFKA"], "linger.ms": 2})
    found = sorted(measure(client, producer, given.rate, given.seconds))
    cuts = quantiles(found, n=100)
    print(
        f"event to feature at {given.rate}/s: p50 {cuts[49]:.0f} ms, p90 {cuts[89]:.0f} ms, p99 {cuts[98]:.0f} ms, "
        f"max {found[-1]:.0f} ms ({len(found)} payments)"
    )


if __name__ == "__main__":
    main()
