"""The doctor for streams that Lakebound did not start."""

from __future__ import annotations

from collections.abc import Sequence

from lakebound.inspection.doctor.diagnosis import Diagnosis
from lakebound.inspection.doctor.foreign.diagnosis import diagnose
from lakebound.inspection.doctor.foreign.mending import Mending, mend
from lakebound.inspection.doctor.foreign.reading import read_foreign


def examine_checkpoint(
    checkpoint: str, tables: Sequence[str], bootstrap_servers: str | None = None
) -> tuple[Diagnosis, Mending | None]:
    """Return what is wrong with a Structured Streaming checkpoint, and what would mend it. Writes nothing.

    Args:
        checkpoint: Its folder, as a path or a ``file:`` address.
        tables: What the query writes, each ``delta:PLACE`` or ``iceberg:PLACE``.
        bootstrap_servers: Of the Kafka that it reads; without it, nothing is said about what Kafka still has.

    Raises:
        NotACheckpointError: The checkpoint is not on this machine's file system.
        BadTableNameError: A table is not named like that.
        BrokerUnavailableError: Kafka does not answer.
    """
    facts = read_foreign(checkpoint, tables, bootstrap_servers)
    diagnosis = diagnose(checkpoint, facts)
    return diagnosis, mend(facts, diagnosis)
