"""The short epochs with which long ones begin. Pure.

Between two epochs Spark plans, starts tasks and writes its logs, and rows wait. The JVM has to compile this code, and does so
only after some runs: the first pause takes 1.5 s, the sixth 0.5 s (10,000 records/s on two cores). With epochs of five minutes
that would be half an hour of long pauses. So some short epochs come first, while the stream is behind anyway.
"""

from __future__ import annotations

from dataclasses import dataclass

LEAST_EPOCH = "spark.sql.streaming.realTimeMode.minBatchDuration"
"""Spark's setting: the shortest epoch that it takes, by default five seconds."""
_LONG_SECONDS = 60
"""Shorter epochs are soon warm by themselves."""
_WARM_UP_EPOCHS = 6
_WARM_UP_EPOCH_MS = 1000


@dataclass(frozen=True)
class Stretch:
    """What one query runs.

    Attributes:
        epoch_ms: Length of its epochs.
        epochs: How many end before its last one; None: it runs until it is stopped.
    """

    epoch_ms: int
    epochs: int | None = None

    def is_over(self, ended: int) -> bool:
        """Return whether the epoch that runs is the last one, after so many have ended."""
        return self.epochs is not None and ended >= self.epochs


def stretches(epoch_seconds: int) -> tuple[Stretch, ...]:
    """Return what runs one after the other for epochs of a length."""
    wanted = Stretch(epoch_seconds * 1000)
    return (wanted,) if epoch_seconds < _LONG_SECONDS else (Stretch(_WARM_UP_EPOCH_MS, _WARM_UP_EPOCHS - 1), wanted)
