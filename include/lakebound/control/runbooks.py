"""The table of runbooks: what each page of include/runbooks is about, how urgent it is, and what happens if nobody acts. Pure.

Findings, refusals and incidents name a page by its key in this table. Pages, messages and alerts take their words from here.
"""

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
class Runbook:
    """What is known of the problem of a page.

    Attributes:
        title: Of the page.
        when: By when a person should act. ``NOW`` may wake the person on call.
        otherwise: What happens if nobody acts, and by when.
        keeps_from_running: Whether no application runs until a person has decided, or until what it waits for is back: a
            dead application, lag and late records then follow from it.
    """

    title: str
    when: When
    otherwise: str
    keeps_from_running: bool = False

    @property
    def urgency(self) -> str:
        """How urgent it is, as the pages say it."""
        wakes = "It may wake the person on call." if self.when is When.NOW else "It wakes nobody at night."
        return f"**{str(self.when).capitalize()}.** {wakes} If nobody acts: {self.otherwise}."


_WAIT = "records wait in Kafka, and the first of them is lost when the topic's retention passes it"
_FOREIGN = "the other stream loses or doubles what the finding names, as soon as somebody starts it"
_UNSEEN = "new problems are noticed late"

RUNBOOKS: Mapping[str, Runbook] = {
    "airflow-down": Runbook(
        "Airflow, or a part of it, is down",
        When.NOW,
        "an application that ends is not started again, and then its records wait in Kafka",
    ),
    "alerts-file": Runbook("alerts.yaml is wrong", When.NOW, "some people do not get the next alert"),
    "application-dead": Runbook(
        "No application runs, but one should run", When.MORNING, f"usually Airflow starts it again; if it does not, {_WAIT}"
    ),
    "bad-deploy": Runbook(
        "New code makes other rows than before",
        When.MORNING,
        "every batch lands more rows as the new code makes them; if that is wrong, more rows have to be made again",
    ),
    "bad-entry": Runbook("A ledger entry cannot be read", When.NOW, _WAIT, keeps_from_running=True),
    "broker-unavailable": Runbook(
        "Kafka does not answer",
        When.NOW,
        "nothing lands until Kafka answers; the application then goes on by itself",
        keeps_from_running=True,
    ),
    "catalog-behind": Runbook("The Iceberg catalog is an older copy", When.NOW, _WAIT, keeps_from_running=True),
    "clock-difference": Runbook(
        "Clocks differ", When.WEEK, "nothing is lost; times are shown wrongly, and a lease may change its holder"
    ),
    "commit-failed": Runbook("A commit fails, and would fail again", When.NOW, _WAIT, keeps_from_running=True),
    "control-files": Runbook("A control file cannot be read", When.NOW, _WAIT),
    "crash-loop": Runbook("Several starts in a row landed nothing", When.NOW, _WAIT),
    "data-loss-near": Runbook(
        "Kafka's retention will soon delete records that are not landed",
        When.NOW,
        "Kafka deletes the first waiting record at the time that the message names",
    ),
    "disk-full": Runbook("A disk is full, or will soon be", When.NOW, _WAIT, keeps_from_running=True),
    "foreign-checkpoint": Runbook(
        "A checkpoint of a stream that Lakebound did not start: its files are wrong", When.MORNING, _FOREIGN
    ),
    "foreign-checkpoint-kafka": Runbook(
        "A checkpoint of a stream that Lakebound did not start: it does not fit Kafka", When.MORNING, _FOREIGN
    ),
    "foreign-checkpoint-table": Runbook(
        "A checkpoint of a stream that Lakebound did not start: it does not fit the table", When.MORNING, _FOREIGN
    ),
    "foreign-table": Runbook("The table belongs to another pipeline", When.MORNING, _WAIT, keeps_from_running=True),
    "freshness": Runbook("Records land too late", When.MORNING, "nothing is lost; readers see late records"),
    "hanging-transaction": Runbook(
        "A transaction hangs in a topic", When.NOW, "consumers get no record after it; nothing is lost"
    ),
    "health-late": Runbook("The health check of the pipelines is late", When.MORNING, _UNSEEN),
    "interior-gap": Runbook(
        "There are gaps below the next offset",
        When.MORNING,
        "the missing records are lost when the topic's retention passes them",
    ),
    "lag": Runbook(
        "The stream is behind",
        When.MORNING,
        "records wait longer and longer; they are lost when the topic's retention passes them",
    ),
    "lease-held": Runbook(
        "Another application holds the lease",
        When.WEEK,
        "nothing: the other application lands the records",
        keeps_from_running=True,
    ),
    "ledger-behind": Runbook("The ledger is older than the table's rows", When.NOW, _WAIT, keeps_from_running=True),
    "maintenance-failed": Runbook(
        "A step of maintenance failed", When.WEEK, "nothing is lost; queries become slower and metadata grows"
    ),
    "missing-secret": Runbook("A secret is missing, or Kafka refuses it", When.NOW, _WAIT, keeps_from_running=True),
    "newer-entry": Runbook("A later version of Lakebound wrote to the table", When.NOW, _WAIT, keeps_from_running=True),
    "no-ledger": Runbook("A table has rows, but no ledger", When.NOW, _WAIT, keeps_from_running=True),
    "offsets-beyond-end": Runbook(
        "The ledger is ahead of Kafka",
        When.NOW,
        "new records with offsets that were landed before are not landed",
        keeps_from_running=True,
    ),
    "proof-failed": Runbook("A proof failed", When.MORNING, "missing records are lost when the topic's retention passes them"),
    "quality": Runbook(
        "Too few rows meet the expectations",
        When.MORNING,
        "nothing is lost; readers use rows that do not meet the expectations",
    ),
    "quarantine-flood": Runbook(
        "Too many records go to quarantine", When.NOW, "readers miss these records; all of them are in quarantine or in Kafka"
    ),
    "reference-refused": Runbook("Reference data keeps a pipeline from starting", When.NOW, _WAIT, keeps_from_running=True),
    "reference-stale": Runbook(
        "Reference data is not refreshed", When.MORNING, "nothing is lost; records are joined with older values"
    ),
    "registry-refused": Runbook(
        "A schema registry refuses the login, or what answers is no schema registry",
        When.NOW,
        "records of new schemas wait in Kafka, and the first of them is lost when the topic's retention passes it",
        keeps_from_running=True,
    ),
    "registry-unavailable": Runbook(
        "A schema registry does not answer",
        When.NOW,
        "records of new schemas wait until it answers; the application then goes on by itself",
        keeps_from_running=True,
    ),
    "refused": Runbook("An application refused to start", When.NOW, _WAIT, keeps_from_running=True),
    "retention-passed": Runbook(
        "Kafka's retention deleted records that were not landed",
        When.NOW,
        "more records are lost each minute; those that the message names are lost already",
        keeps_from_running=True,
    ),
    "rows-changed": Runbook(
        "Others changed rows of a table", When.MORNING, "the stream goes on; readers use rows that somebody else changed"
    ),
    "schema-id-reused": Runbook(
        "A schema registry has another schema by an id that was used before",
        When.NOW,
        "records of this id go to quarantine, and readers miss them",
    ),
    "schema-changed": Runbook("The rows do not fit the schema of the tables", When.NOW, _WAIT, keeps_from_running=True),
    "stall": Runbook(
        "The stream stalled",
        When.NOW,
        f"Airflow or the watch ends the application and starts another; if that does not help, {_WAIT}",
    ),
    "state-away": Runbook(
        "The state in the object store cannot be read or written",
        When.NOW,
        "applications end when their lease cannot be renewed, and then records wait in Kafka",
        keeps_from_running=True,
    ),
    "state-folder": Runbook(
        "The state folder was lost, or there are two of them",
        When.NOW,
        "two applications may end each other again and again, and records land late",
    ),
    "table-dropped": Runbook("A table is gone", When.NOW, _WAIT, keeps_from_running=True),
    "table-feature": Runbook("A table uses a feature that Lakebound does not write", When.NOW, _WAIT, keeps_from_running=True),
    "table-restored": Runbook("A Delta table was restored by hand", When.NOW, _WAIT, keeps_from_running=True),
    "table-unreadable": Runbook(
        "A table cannot be read",
        When.NOW,
        "nothing lands until the table can be read; the application then goes on by itself",
        keeps_from_running=True,
    ),
    "tables-disagree": Runbook(
        "Tables have offsets of different incarnations of a topic", When.NOW, _WAIT, keeps_from_running=True
    ),
    "target-store": Runbook(
        "A store refuses what a pipeline writes, or is not the one that its ledger names",
        When.NOW,
        "the values in the store become old, and records wait in Kafka",
        keeps_from_running=True,
    ),
    "target-topic": Runbook(
        "A target topic has messages that no ledger entry explains, or was recreated",
        When.NOW,
        "consumers of the target topic get no new messages, and records wait in Kafka",
        keeps_from_running=True,
    ),
    "topic-missing": Runbook(
        "A topic is not on the broker",
        When.MORNING,
        "nothing lands until the topic exists; records of a deleted topic are lost already",
        keeps_from_running=True,
    ),
    "topic-recreated": Runbook("The topic was recreated", When.NOW, _WAIT, keeps_from_running=True),
    "transform-refused": Runbook(
        "The transform does what cannot be landed or replayed", When.NOW, _WAIT, keeps_from_running=True
    ),
    "two-drivers": Runbook(
        "Two applications run, or an old one must be stopped from writing",
        When.MORNING,
        "nothing is lost; the table refuses the older application",
    ),
    "unknown-fields": Runbook(
        "Records have fields that are not in the schema",
        When.WEEK,
        "the tables lack these values; a rewind lands them again only while Kafka still has the records",
    ),
    "validation-failed": Runbook(
        "Validation found something", When.MORNING, "nothing is lost; readers use rows that may be wrong"
    ),
    "windows-refused": Runbook(
        "Rows of windows cannot land, or open windows cannot be rebuilt", When.NOW, _WAIT, keeps_from_running=True
    ),
}
"""By the name of the page."""
