"""How urgent the problem of each runbook is, and what is lost if nobody acts, as pages and messages say it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class When(StrEnum):
    """By when a person should act."""

    NOW = "now"
    MORNING = "this morning"
    WEEK = "this week"


@dataclass(frozen=True)
class Urgency:
    """How urgent a problem is.

    Attributes:
        when: By when a person should act.
        otherwise: What happens if nobody acts, and by when.
    """

    when: When
    otherwise: str

    def __str__(self) -> str:
        """Return it as the pages say it."""
        wakes = "It may wake the person on call." if self.when is When.NOW else "It wakes nobody at night."
        return f"**{str(self.when).capitalize()}.** {wakes} If nobody acts: {self.otherwise}."


_WAIT = "records wait in Kafka, and the first of them is lost when the topic's retention passes it"
_FOREIGN = "the other stream loses or doubles what the finding names, as soon as somebody starts it"
_UNSEEN = "new problems are noticed late"

URGENCIES: Mapping[str, Urgency] = {
    "airflow-down": Urgency(When.NOW, "an application that ends is not started again, and then its records wait in Kafka"),
    "alerts-file": Urgency(When.NOW, "some people do not get the next alert"),
    "application-dead": Urgency(When.MORNING, f"usually Airflow starts it again; if it does not, {_WAIT}"),
    "bad-entry": Urgency(When.NOW, _WAIT),
    "broker-unavailable": Urgency(When.NOW, "nothing lands until Kafka answers; the application then goes on by itself"),
    "catalog-behind": Urgency(When.NOW, _WAIT),
    "clock-difference": Urgency(When.WEEK, "nothing is lost; times are shown wrongly, and a lease may change its holder"),
    "commit-failed": Urgency(When.NOW, _WAIT),
    "control-files": Urgency(When.NOW, _WAIT),
    "crash-loop": Urgency(When.NOW, _WAIT),
    "data-loss-near": Urgency(When.NOW, "Kafka deletes the first waiting record at the time that the message names"),
    "disk-full": Urgency(When.NOW, _WAIT),
    "foreign-checkpoint": Urgency(When.MORNING, _FOREIGN),
    "foreign-checkpoint-kafka": Urgency(When.MORNING, _FOREIGN),
    "foreign-checkpoint-table": Urgency(When.MORNING, _FOREIGN),
    "foreign-table": Urgency(When.MORNING, _WAIT),
    "freshness": Urgency(When.MORNING, "nothing is lost; readers see late records"),
    "hanging-transaction": Urgency(When.NOW, "consumers get no record after it; nothing is lost"),
    "health-late": Urgency(When.MORNING, _UNSEEN),
    "interior-gap": Urgency(When.MORNING, "the missing records are lost when the topic's retention passes them"),
    "lag": Urgency(When.MORNING, "records wait longer and longer; they are lost when the topic's retention passes them"),
    "lease-held": Urgency(When.WEEK, "nothing: the other application lands the records"),
    "ledger-behind": Urgency(When.NOW, _WAIT),
    "maintenance-failed": Urgency(When.WEEK, "nothing is lost; queries become slower and metadata grows"),
    "missing-secret": Urgency(When.NOW, _WAIT),
    "newer-entry": Urgency(When.NOW, _WAIT),
    "no-ledger": Urgency(When.NOW, _WAIT),
    "offsets-beyond-end": Urgency(When.NOW, "new records with offsets that were landed before are not landed"),
    "proof-failed": Urgency(When.MORNING, "missing records are lost when the topic's retention passes them"),
    "quality": Urgency(When.MORNING, "nothing is lost; readers use rows that do not meet the expectations"),
    "quarantine-flood": Urgency(When.NOW, "readers miss these records; all of them are in quarantine or in Kafka"),
    "reference-refused": Urgency(When.NOW, _WAIT),
    "reference-stale": Urgency(When.MORNING, "nothing is lost; records are joined with older values"),
    "refused": Urgency(When.NOW, _WAIT),
    "retention-passed": Urgency(When.NOW, "more records are lost each minute; those that the message names are lost already"),
    "rows-changed": Urgency(When.MORNING, "the stream goes on; readers use rows that somebody else changed"),
    "schema-changed": Urgency(When.NOW, _WAIT),
    "stall": Urgency(When.NOW, f"Airflow or the watch ends the application and starts another; if that does not help, {_WAIT}"),
    "state-away": Urgency(When.NOW, "applications end when their lease cannot be renewed, and then records wait in Kafka"),
    "state-folder": Urgency(When.NOW, "two applications may end each other again and again, and records land late"),
    "table-dropped": Urgency(When.NOW, _WAIT),
    "table-feature": Urgency(When.NOW, _WAIT),
    "table-restored": Urgency(When.NOW, _WAIT),
    "table-unreadable": Urgency(When.NOW, "nothing lands until the table can be read; the application then goes on by itself"),
    "tables-disagree": Urgency(When.NOW, _WAIT),
    "target-store": Urgency(When.NOW, "the values in the store become old, and records wait in Kafka"),
    "target-topic": Urgency(When.NOW, "consumers of the target topic get no new messages, and records wait in Kafka"),
    "topic-missing": Urgency(When.MORNING, "nothing lands until the topic exists; records of a deleted topic are lost already"),
    "topic-recreated": Urgency(When.NOW, _WAIT),
    "transform-refused": Urgency(When.NOW, _WAIT),
    "two-drivers": Urgency(When.MORNING, "nothing is lost; the table refuses the older application"),
    "unknown-fields": Urgency(
        When.WEEK, "the tables lack these values; a rewind lands them again only while Kafka still has the records"
    ),
    "validation-failed": Urgency(When.MORNING, "nothing is lost; readers use rows that may be wrong"),
}
"""By the name of the runbook."""


def urgency_of(runbook: str | None) -> Urgency | None:
    """Return how urgent the problem of a runbook is; None where no page says so, as for a check of your own."""
    return URGENCIES.get(runbook or "")
