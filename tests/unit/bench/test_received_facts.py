"""What the benchmark of topics counts of an outside consumer's messages."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from received_facts import Doubles, doubles_seen, latencies_ms, read_received

# Target partition, source topic, partition, offset, ordinal, receipt: the second row comes again after a kill at 50.
LINES = ("0 src 0 0 0 10.5", "1 src 0 1 0 11", "0 src 1 0 0 12", "1 src 0 1 0 60", "0 src 0 2 0 61", "1 src 0 3 0 70")


def test_doubles_and_latencies_are_counted(tmp_path: Path) -> None:
    out = tmp_path / "received.txt"
    out.write_text("\n".join(LINES))
    out.with_suffix(".sample").write_text("[]")
    received = read_received(out)

    assert doubles_seen(received, 50) == (Doubles(plain=1, deduplicating=0, wrongly_skipped=0), 61.0)
    times = {0: np.array([10.0, 10.0, 55.0, 69.0]), 1: np.array([9.0])}
    assert sorted(latencies_ms(received, times, 0, 100)) == [0.5, 1.0, 1.0, 3.0, 6.0]
    assert sorted(latencies_ms(received, times, 50, 60)) == [6.0]


def test_order_across_partitions_of_the_target_skips_nothing(tmp_path: Path) -> None:
    out = tmp_path / "received.txt"
    out.write_text("0 src 0 5 0 1\n1 src 0 2 0 2\n0 src 0 5 0 3")
    out.with_suffix(".sample").write_text("[]")
    found = doubles_seen(read_received(out), 0)[0]
    assert found == Doubles(plain=1, deduplicating=0, wrongly_skipped=0)
    assert json.loads(json.dumps([found.plain, found.deduplicating, found.wrongly_skipped])) == [1, 0, 0]
