"""One root exception, one class per situation; each builds its sentence from facts.

Here are the classes that several rooms raise, and those with a runbook or attributes of their own: another process looks these
up by the name in a file (``error_named``). Any other class that only one room raises is defined in that room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar


class LakeboundError(Exception):
    """Anything that Lakebound refuses or fails at; its text says what is wrong, where, and what to do next.

    Attributes:
        passes: Whether it is known to pass by itself, so that it is waited out.
        runbook: The page of include/runbooks that says what to do.
        is_refusal: Whether a start that meets it is refused: the next start would meet it again, so a person decides.
        is_seen_by_a_start_alone: Whether only a start can see its cause; the doctor sees the others by itself.
    """

    passes: ClassVar[bool] = False
    runbook: ClassVar[str] = "refused"
    is_refusal: ClassVar[bool] = False
    is_seen_by_a_start_alone: ClassVar[bool] = False

    def __init_subclass__(cls, **attributes: str | bool) -> None:
        """Take the attributes that differ from the base class's: ``class XError(LakeboundError, is_refusal=True)``."""
        super().__init_subclass__()
        for name, value in attributes.items():
            if name not in LakeboundError.__annotations__:
                raise TypeError(f"{cls.__name__}: an error of Lakebound has no attribute {name}")
            setattr(cls, name, value)


class SettingError(LakeboundError):
    """An environment variable of Lakebound has a value that means nothing."""

    def __init__(self, variable: str, problem: str) -> None:
        super().__init__(f"environment variable {variable}: {problem}; the page docs/environment.md lists the permitted values")


class InvalidSpecError(LakeboundError):
    """A pipeline's YAML is wrong: the user's to mend.

    Attributes:
        problems: One line per mistake, each ``FILE:LINE: FIELD: what is wrong``.
    """

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class OperatorsFileError(LakeboundError, is_refusal=True):
    """A file of whoever runs Lakebound, which stands beside the pipelines, is wrong.

    Attributes:
        problems: One line per mistake, each ``FILE:LINE: FIELD: what is wrong``.
    """

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class InvalidWarehousesError(OperatorsFileError):
    """``warehouses.yaml`` is wrong."""


class InvalidRegistriesError(OperatorsFileError):
    """``registries.yaml`` is wrong."""


class UnknownWarehouseError(LakeboundError, is_refusal=True):
    """A pipeline names a warehouse that ``warehouses.yaml`` does not have."""

    def __init__(self, warehouse: str, known: list[str], file: Path) -> None:
        super().__init__(f"there is no warehouse {warehouse!r} in {file}; known warehouses: {', '.join(known)}")


class UnknownRegistryError(LakeboundError, is_refusal=True):
    """A pipeline names a schema registry that ``registries.yaml`` does not have."""

    def __init__(self, registry: str, known: list[str], file: Path) -> None:
        names = ", ".join(known) or "none"
        super().__init__(f"there is no schema registry {registry!r} in {file}; known registries: {names}")


class NotOnThisMachineError(LakeboundError, is_refusal=True):
    """Something was asked of a folder in an object store that is done to folders of this machine only."""

    def __init__(self, address: str) -> None:
        super().__init__(
            f"{address} is in an object store, but this works only for tables in a folder of this machine; "
            f"docs/how-to/object-stores.md lists what works in an object store"
        )


class UnknownPipelineError(LakeboundError):
    """No YAML file declares the pipeline that was asked for."""

    def __init__(self, pipeline: str, known: list[str], folder: Path) -> None:
        names = ", ".join(sorted(known)) or "none"
        super().__init__(f"there is no pipeline {pipeline!r} in {folder}; known pipelines: {names}")


class MissingSecretError(LakeboundError, runbook="missing-secret", is_refusal=True, is_seen_by_a_start_alone=True):
    """A secret is named in YAML, but is not where the name points."""

    def __init__(self, field: str, where: str) -> None:
        super().__init__(f"{field}: {where} is empty or missing; set it where the Spark application runs")


class UnusableSecretError(MissingSecretError):
    """A secret has characters with which it cannot be sent. Says nothing of what it holds."""

    def __init__(self, field: str, where: str) -> None:
        LakeboundError.__init__(
            self,
            f"{field}: {where} has a line feed, or another character that a token cannot have; write the token there "
            f"again, and nothing else",
        )


class TlsFileError(MissingSecretError):
    """A file of a connection's certificates or keys cannot be used."""

    def __init__(self, field: str, what: str) -> None:
        LakeboundError.__init__(self, f"connection.{field}: {what}")


class NamedFileError(MissingSecretError):
    """A file that a pipeline's YAML names cannot be used."""

    def __init__(self, field: str, what: str) -> None:
        LakeboundError.__init__(self, f"{field}: {what}")


class ForbiddenSecretError(LakeboundError, runbook="missing-secret", is_refusal=True, is_seen_by_a_start_alone=True):
    """A pipeline names a secret that its author may not read."""

    def __init__(self, field: str, what: str) -> None:
        super().__init__(f"{field}: {what}")


class ReferenceRefusedError(LakeboundError, runbook="reference-refused", is_refusal=True, is_seen_by_a_start_alone=True):
    """Reference data of a pipeline cannot be used."""

    def __init__(self, name: str, place: str, problem: str) -> None:
        self.name, self.problem = name, problem
        super().__init__(f"reference {name!r} ({place}): {problem}")


class MissingTopicError(LakeboundError, runbook="topic-missing"):
    """A topic of the pipeline is not on the broker."""

    def __init__(self, topic: str, bootstrap_servers: str) -> None:
        self.topic = topic
        super().__init__(
            f"topic {topic!r} is not on the broker at {bootstrap_servers}; "
            f"create it (lakebound create-topic), or correct 'topics' in the pipeline's YAML"
        )


class BrokerUnavailableError(LakeboundError, passes=True, runbook="broker-unavailable"):
    """Kafka does not answer: usually passes by itself."""

    def __init__(self, bootstrap_servers: str, reason: str) -> None:
        super().__init__(
            f"no answer from Kafka at {bootstrap_servers}: {reason}; check the address and the broker. A stream tries again by "
            f"itself until Kafka answers"
        )


class KafkaRefusalError(LakeboundError, runbook="missing-secret", is_refusal=True):
    """Kafka answers, and refuses.

    A running application waits as in an outage, because somebody may be about to mend it. When it has waited long enough, it
    ends as a refusal.
    """


class KafkaLoginError(KafkaRefusalError):
    """Kafka, or its token server, does not accept the login; or the broker's certificate is not accepted here."""

    def __init__(self, bootstrap_servers: str, reason: str, fields: str) -> None:
        super().__init__(f"no login to Kafka at {bootstrap_servers}: {reason}; check {fields} under connection")


class KafkaForbiddenError(KafkaRefusalError):
    """Kafka has accepted the login, and does not let the user do what is needed."""

    def __init__(self, bootstrap_servers: str, who: str, operation: str) -> None:
        super().__init__(
            f"Kafka at {bootstrap_servers} does not allow {who}: {operation}; grant that ACL (docs/how-to/kafka-security.md)"
        )


class RegistryUnavailableError(LakeboundError, passes=True, runbook="registry-unavailable"):
    """A schema registry does not answer, or answers that it cannot at this moment: usually passes by itself."""

    def __init__(self, registry: str, url: str, reason: str) -> None:
        super().__init__(
            f"no answer from the schema registry {registry!r} at {url}: {reason.rstrip('.')}. A stream that has read its "
            f"schemas before lands up to the first record of a new one, and asks again by itself; a first start has to wait "
            f"until the registry answers"
        )


class RegistryRefusalError(LakeboundError, runbook="registry-refused", is_refusal=True):
    """A schema registry answers, and what it says needs a person."""


class RegistryLoginError(RegistryRefusalError):
    """A schema registry does not accept the login; or its certificate is not accepted here."""

    def __init__(self, registry: str, url: str, reason: str, fields: str) -> None:
        super().__init__(
            f"no login to the schema registry {registry!r} at {url}: {reason}; check {fields} of this registry in "
            f"registries.yaml"
        )


class RegistryForbiddenError(RegistryRefusalError):
    """A schema registry has accepted the login, and does not let the user read what is needed."""

    def __init__(self, registry: str, url: str, what: str, reason: str) -> None:
        super().__init__(
            f"the schema registry {registry!r} at {url} does not allow its user to read {what}: {reason}; grant this user the "
            f"right to read"
        )


class RegistryAnswerError(RegistryRefusalError):
    """What answers is no schema registry with Confluent's API, or not at this address."""

    def __init__(self, registry: str, url: str, what: str) -> None:
        super().__init__(
            f"what answers as the schema registry {registry!r} at {url} has not Confluent's API: {what}; correct url of this "
            f"registry in registries.yaml"
        )


class ReusedSchemaIdError(LakeboundError, runbook="schema-id-reused"):
    """A schema registry has another schema by an id than the one that was used for this id before.

    Nobody can tell which of the two a record was written with, so records of this id are not decoded.
    """

    def __init__(self, registry: str, schema_id: int | str, used: str, found: str) -> None:
        super().__init__(
            f"the schema registry {registry!r} has another schema by the id {schema_id} (fingerprint {found[:12]}) than the "
            f"one that was used before (fingerprint {used[:12]}): it has lost its data, or is another registry. Follow the "
            f"runbook schema-id-reused"
        )


class TopicWithoutIdError(LakeboundError, is_refusal=True):
    """The broker gives topics no ids, so that nobody can tell a topic from a later one of the same name."""

    def __init__(self, topic: str, bootstrap_servers: str) -> None:
        super().__init__(
            f"the broker at {bootstrap_servers} gives topic {topic!r} no id. Without ids, Lakebound cannot notice that a "
            f"topic was deleted and created again, and would treat its new offsets as landed. Nothing was written. Kafka 2.8 "
            f"and later give topics ids if inter.broker.protocol.version is 2.8 or later: upgrade the brokers, or mirror the "
            f"topic to such a cluster"
        )


class TopicRecreatedError(LakeboundError, runbook="topic-recreated", is_refusal=True):
    """A topic's id is not the one whose offsets the ledger holds: only a person can decide what to do."""

    def __init__(self, topic: str, landed_id: str, found_id: str) -> None:
        super().__init__(
            f"topic {topic!r} was deleted and created again: the ledger has offsets of topic id {landed_id}, the broker has "
            f"topic id {found_id}; nothing was written. Follow the runbook topic-recreated"
        )


class TargetRecreatedError(LakeboundError, runbook="target-topic", is_refusal=True):
    """A topic that a pipeline writes to is not the one whose rows its ledger names: those are gone."""

    def __init__(self, topic: str, landed_id: str, found_id: str) -> None:
        super().__init__(
            f"target topic {topic!r} was deleted and created again: the ledger names rows in topic id {landed_id}, the broker "
            f"has topic id {found_id}; nothing was written. Follow the runbook target-topic"
        )


class TargetNotEmptyError(LakeboundError, runbook="target-topic", is_refusal=True):
    """A topic that a pipeline is to write to has had messages, and no entry of the ledger topic says what they are."""

    def __init__(self, topic: str, ledger: str) -> None:
        super().__init__(
            f"target topic {topic!r} has, or had, messages, but the ledger topic {ledger!r} has no entry about it, so it is "
            f"unknown which rows it contains; nothing was written. Follow the runbook target-topic"
        )


class StoreUnavailableError(LakeboundError, passes=True, runbook="target-store"):
    """A store that a pipeline writes to does not answer, or cannot at this moment: usually passes by itself."""

    def __init__(self, store: str, place: str, reason: str) -> None:
        super().__init__(
            f"store {store} at {place} does not answer: {reason}; check the address and the store. A stream tries again by "
            f"itself until the store answers"
        )


class StoreRefusedError(LakeboundError, runbook="target-store", is_refusal=True):
    """A store cannot be written to as it is: login, rights, columns or settings. A person has to change one of them."""

    def __init__(self, store: str, place: str, reason: str) -> None:
        super().__init__(f"store {store} at {place}: {reason}. Follow the runbook target-store")


class StoreNotEmptyError(LakeboundError, runbook="target-store", is_refusal=True):
    """A store that a pipeline is to write to has rows, and no entry of a ledger says what they are."""

    def __init__(self, store: str, place: str) -> None:
        super().__init__(
            f"store {store} at {place} has rows, but its ledger has no entry, so it is unknown which rows these are; nothing "
            f"was written. Follow the runbook target-store"
        )


class StoreShapeError(LakeboundError, runbook="target-store", is_refusal=True):
    """What a pipeline writes to a store cannot stand beside what is there: the key, columns, windows or sums are others."""

    def __init__(self, store: str, place: str, differences: Sequence[str]) -> None:
        super().__init__(
            f"store {store} at {place} was filled by other settings: {'; '.join(differences)}. Nothing was written. Write the "
            f"settings as they were, give the store another name, or build it again (lakebound rebuild-store). Follow the "
            f"runbook target-store"
        )


class StoreIncompleteError(LakeboundError, runbook="target-store", is_refusal=True):
    """A store was being filled from a table, and this did not end: rows are missing that nobody would add."""

    def __init__(self, store: str, place: str, commit: str) -> None:
        super().__init__(
            f"store {store} at {place} was being filled from a table, and this did not end (commit {commit}): some rows are "
            f"missing. Nothing is written to it until it is complete. Plan and apply lakebound rebuild-store … --from-table "
            f"again. Follow the runbook target-store"
        )


class StoreTornError(LakeboundError, runbook="target-store", is_refusal=True):
    """A commit to counters in Redis began and did not end: which of its counts are in them is not known."""

    def __init__(self, store: str, place: str, commit: str) -> None:
        super().__init__(
            f"store {store} at {place}: the commit {commit} began and did not end, so some of its counts may be in the "
            f"counters and others not; nothing more is written. Follow the runbook target-store"
        )


class StoreLedgerLostError(LakeboundError, runbook="target-store"):
    """A store's ledger had an entry, and has none any more: the server has lost its data, or somebody has deleted it."""

    def __init__(self, store: str, place: str, commit: str) -> None:
        super().__init__(
            f"store {store} at {place}: its ledger is empty, but it contained commit {commit} before; this application "
            f"writes nothing more to it. The next start fills an empty store again, and refuses a store that has rows without "
            f"a ledger. Follow the runbook target-store"
        )


class TopicCommitError(LakeboundError, runbook="commit-failed", is_refusal=True, is_seen_by_a_start_alone=True):
    """A transaction failed for a reason that would come again."""

    def __init__(self, target: str, reason: str) -> None:
        super().__init__(f"{target}: the transaction was not committed: {reason}")


class OpenTransactionError(LakeboundError, passes=True, runbook="hanging-transaction"):
    """A transaction that is not ended keeps the ledger topic from being read to its end."""

    def __init__(self, topic: str, stable: int, end: int) -> None:
        super().__init__(
            f"topic {topic}: a transaction has been open since offset {stable}, so the ledger cannot be read up to "
            f"offset {end}. Kafka aborts the transaction when it times out. If it stays open, follow the runbook "
            f"hanging-transaction"
        )


class RetentionPassedError(LakeboundError, runbook="retention-passed", is_refusal=True):
    """Kafka has deleted records that were never landed."""

    def __init__(self, topic: str, partition: int, landed: int, earliest: int) -> None:
        super().__init__(
            f"topic {topic!r} partition {partition}: the next offset to land is {landed}, but Kafka's earliest offset is "
            f"{earliest}: {earliest - landed} offsets are lost; nothing was written. Follow the runbook retention-passed"
        )


class LeaseHeldError(LakeboundError, runbook="lease-held", is_refusal=True):
    """Another application may write for this pipeline."""

    def __init__(self, pipeline: str, holder: str, epoch: int, age_seconds: float) -> None:
        super().__init__(
            f"pipeline {pipeline!r} is being written by {holder} (epoch {epoch}, last heartbeat {age_seconds:.0f} s ago); "
            f"stop that application first, or wait until its lease expires"
        )


class LockHeldError(LakeboundError, runbook="control-files"):
    """A lock of the state folder is held for longer than anything of Lakebound holds it."""

    def __init__(self, lock: Path | str, holder: str, deadline_seconds: float) -> None:
        super().__init__(
            f"{lock} has been locked by {holder} for more than {deadline_seconds:g} s. If that process does not belong to "
            f"Lakebound, end it; otherwise wait until it ends. Then try again"
        )


class LeaseLostError(LakeboundError):
    """A later application took the lease: this one is a zombie and must end without writing."""

    def __init__(self, pipeline: str, own_epoch: int, found_epoch: int) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: epoch {own_epoch} was superseded by epoch {found_epoch} of another application; this "
            f"application ends without writing"
        )


class NotWithSharedStateError(LakeboundError, is_refusal=True):
    """Something was asked that needs all state to be in a folder of this machine, while LAKEBOUND_STATE shares it."""

    def __init__(self, what: str, instead: str) -> None:
        super().__init__(
            f"{what} needs the state in a folder of this machine, but LAKEBOUND_STATE shares it in an object store; nothing "
            f"was done. {instead}. The page docs/how-to/object-stores.md lists what works with shared state"
        )


class StateAwayError(LakeboundError, passes=True, runbook="state-away"):
    """The shared state does not answer for as long as a lease lasts, so another application may have taken it."""

    def __init__(self, pipeline: str, place: object, seconds: float) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: the state in {place} could not be written for {seconds:.0f} s, so the lease may have "
            f"expired and the application ends. Committed records stay, and the next application continues from the tables"
        )


class NoLedgerError(LakeboundError, runbook="no-ledger", is_refusal=True):
    """A table has rows, but no commit of it carries an entry."""

    def __init__(self, table: str) -> None:
        super().__init__(
            f"table {table} has data but no ledger entry that can be read, so it is unknown which offsets it contains; "
            f"nothing was written. Follow the runbook no-ledger"
        )


class BadEntryError(LakeboundError, runbook="bad-entry", is_refusal=True):
    """An entry in a commit cannot be read."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"the ledger entry in {where} cannot be read: {reason}. Follow the runbook bad-entry")


class NewerEntryError(BadEntryError, runbook="newer-entry"):
    """An entry was written by a later version, and says that who does not know what is new in it must not read it."""

    def __init__(self, where: str, writer: str | None, needs: str, here: str) -> None:
        LakeboundError.__init__(
            self,
            f"the ledger entry in {where} was written by a later version of Lakebound ({writer or 'not named'}): "
            f"it needs {needs}, which version {here} does not know. Nothing is damaged. Follow the runbook newer-entry",
        )


class ForeignTableError(LakeboundError, runbook="foreign-table", is_refusal=True):
    """A table belongs to another pipeline; one pipeline per table."""

    def __init__(self, table: str, owner: str, pipeline: str) -> None:
        super().__init__(f"table {table} is written by pipeline {owner!r}; give pipeline {pipeline!r} another table")


class TableUnreadableError(LakeboundError, runbook="table-unreadable", is_refusal=True):
    """A table is there, and its metadata cannot be read."""

    def __init__(self, table: str, reason: str, last_readable: int | None = None) -> None:
        self.last_readable = last_readable
        known = f"; the last readable version is {last_readable}" if last_readable is not None else ""
        super().__init__(f"table {table} cannot be read: {reason}{known}. Follow the runbook table-unreadable")


class RowsNotReadError(LakeboundError):
    """A table's rows can be read by other tools only, or by none."""

    def __init__(self, table: str, why: str, what_to_do: str) -> None:
        super().__init__(f"table {table}: its rows cannot be read here: {why}. {what_to_do}")


class CatalogLockedError(LakeboundError, passes=True, runbook="table-unreadable"):
    """Another process holds the lock of the SQLite catalog for longer than a commit takes: passes when it ends its work."""

    def __init__(self, catalog: Path, holder: str) -> None:
        super().__init__(
            f"database is locked: the Iceberg catalog {catalog} is locked by {holder}; nothing is lost. If that process "
            f"does not belong to Lakebound (a database browser, or a copy that hangs), end it; otherwise wait until it ends"
        )


class CatalogUnavailableError(LakeboundError, passes=True, runbook="table-unreadable"):
    """An Iceberg catalog does not answer, or answers that it cannot at this moment: passes by itself."""

    def __init__(self, catalog: str, reason: str) -> None:
        super().__init__(
            f"no answer from the Iceberg catalog {catalog}: {reason}; nothing is lost. When the catalog answers "
            f"again, the ledger says what was committed"
        )


class CatalogRefusedError(LakeboundError, runbook="table-unreadable", is_refusal=True):
    """An Iceberg catalog refuses its user, or what was asked of it."""

    def __init__(self, catalog: str, field: str, reason: str) -> None:
        super().__init__(f"the Iceberg catalog {catalog} refuses the request: {reason}; correct {field} in warehouses.yaml")


class NoCatalogError(LakeboundError, is_refusal=True):
    """A warehouse has no Iceberg catalog, and an Iceberg table was asked for."""

    def __init__(self, location: str) -> None:
        super().__init__(
            f"the warehouse at {location} has no catalog for Iceberg tables; name one as its catalog in warehouses.yaml"
        )


class CatalogBehindError(LakeboundError, runbook="catalog-behind", is_refusal=True):
    """The Iceberg catalog names an older metadata file than the table's newest: it was restored from an older copy.

    Attributes:
        named: Address of the file that the catalog names.
        newest: Address of the newest; None where the files belong to several histories.
    """

    def __init__(self, table: str, named: str, newest: str | None, ends: Sequence[str]) -> None:
        self.named = named
        self.newest = newest
        found = (
            f"the table has the newer file {ends[0]}"
            if newest is not None
            else f"newer files belong to several histories, which end with {' and '.join(ends)}"
        )
        super().__init__(
            f"table {table}: the catalog names the metadata file {named.rpartition('/')[2]}, but {found}: the catalog is an "
            f"older copy, and a start would fork the table's history; nothing was written. Follow the runbook catalog-behind"
        )


class ForgottenTableError(LakeboundError, runbook="catalog-behind", is_refusal=True, is_seen_by_a_start_alone=True):
    """The Iceberg catalog does not know a table whose folder has its history: the catalog is an older copy, or was lost."""

    def __init__(self, table: str, newest: str) -> None:
        super().__init__(
            f"table {table}: the catalog does not know this table, but its folder has its history ({newest}). If it were "
            f"created again, its rows would be hidden; nothing was written. Register that file in the catalog, or move the "
            f"folder aside. Follow the runbook catalog-behind"
        )


class CommitRefusedError(LakeboundError, passes=True):
    """A commit did not take place because the table moved on under the handle (a fence, or a conflict)."""

    def __init__(self, table: str, reason: str) -> None:
        super().__init__(f"table {table} refused the commit: {reason}")


class CommitUnknownError(LakeboundError, passes=True, runbook="commit-failed"):
    """It could not be learned whether a commit took place, or it did not, for a reason that passes by itself."""

    def __init__(self, table: str, attempts: int, reason: str) -> None:
        super().__init__(
            f"table {table}: no confirmed commit after {attempts} attempts ({reason}); "
            f"nothing is lost: the next start reads these offsets again"
        )


class DiskFullError(CommitUnknownError, runbook="disk-full"):
    """A disk has no room for what was to be written. An application waits until it has."""

    def __init__(self, what: str, disk: str) -> None:
        LakeboundError.__init__(
            self,
            f"{what}: no space is left on the disk {disk}; nothing is lost: what was not committed is read again when there "
            f"is room. Follow the runbook disk-full",
        )


class CommitFailedError(LakeboundError, runbook="commit-failed", is_refusal=True, is_seen_by_a_start_alone=True):
    """A commit did not take place, for a reason that would come again."""

    def __init__(self, table: str, attempts: int, reason: str) -> None:
        super().__init__(
            f"table {table}: the commit failed {attempts} times ({reason}), and another attempt would fail, too; none of it "
            f"was written. Follow the runbook commit-failed"
        )


class TableMismatchError(LakeboundError, is_refusal=True, is_seen_by_a_start_alone=True):
    """A table's schema or partitioning is not what the pipeline produces.

    Attributes:
        difference: What differs.
    """

    def __init__(self, table: str, difference: str) -> None:
        self.difference = difference
        super().__init__(f"table {table} does not fit the pipeline: {difference}")


class FilesOutdatedError(LakeboundError, passes=True):
    """Files were written for a table that has other columns or another partitioning now. Nothing was committed.

    They are written again.
    """

    def __init__(self, table: str, what: str) -> None:
        super().__init__(
            f"table {table}: somebody else has changed {what} since the rows were written; they were not committed, and are "
            "written again for the table as it is now"
        )


class SchemaChangedError(TableMismatchError, runbook="schema-changed"):
    """What the pipeline says and what its tables are have come apart, and nothing may be changed by itself."""

    def __init__(self, pipeline: str, differences: Mapping[str, Sequence[str]]) -> None:
        self.difference = "; ".join(f"{table}: {', '.join(texts)}" for table, texts in differences.items())
        LakeboundError.__init__(
            self,
            f"pipeline {pipeline!r}: its rows do not fit the schema of its tables: {self.difference}; no table was created or "
            f"changed. Follow the runbook schema-changed",
        )


class TransformRefusedError(LakeboundError, runbook="transform-refused", is_refusal=True, is_seen_by_a_start_alone=True):
    """The transform does something that would make a wider replay differ, or loses the _kafka column."""

    def __init__(self, pipeline: str, transform: str, reason: str) -> None:
        super().__init__(f"pipeline {pipeline!r}: transform {transform}: {reason}")


class TransformSettingsError(LakeboundError, runbook="transform-refused", is_refusal=True, is_seen_by_a_start_alone=True):
    """The transform, or its module, changes settings of Spark's session that decide rows."""

    def __init__(self, pipeline: str, transform: str, when: str, changes: Sequence[str]) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: transform {transform}: {when} sets {', '.join(changes)} in Spark's session. Such settings "
            f"decide how the records of all batches are read, so they were put back, and nothing was landed with them. Take "
            f"this out, and use functions that say what they need (from_utc_timestamp, to_utc_timestamp, try_cast, the options "
            f"of to_json). Follow the runbook transform-refused"
        )


class WithStateError(LakeboundError, is_refusal=True):
    """Something that goes by the offsets of rows was asked of a pipeline whose rows are of windows."""

    def __init__(self, pipeline: str, action: str, instead: str) -> None:
        super().__init__(
            f"pipeline {pipeline!r} has 'state': its rows are of windows and name no offsets, so it has no {action}; {instead}"
        )


class WindowsMismatchError(LakeboundError, runbook="windows-refused", is_refusal=True, is_seen_by_a_start_alone=True):
    """The tables of a pipeline with state do not stand at one batch, or at two that follow each other."""

    def __init__(self, pipeline: str, reason: str) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: open windows cannot be rebuilt: {reason}. Nothing was landed. Restore the tables to one "
            f"moment, or land the topic into new tables with another pipeline. Follow the runbook windows-refused"
        )


class WindowsGoneError(LakeboundError, runbook="windows-refused", is_refusal=True, is_seen_by_a_start_alone=True):
    """Kafka has deleted records that open windows held, so they cannot be rebuilt."""

    def __init__(self, pipeline: str, topic: str, gone: Mapping[int, tuple[int, int]], until: str) -> None:
        told = ", ".join(f"partition {p}: {start} to {end}" for p, (start, end) in gone.items())
        super().__init__(
            f"pipeline {pipeline!r}: Kafka has deleted records of {topic} that open windows held ({told}): windows that end "
            f"at or before {until} may be wrong. Nothing was landed. Land the topic into new tables with another pipeline, "
            f"whose first windows begin with the records that are left. Follow the runbook windows-refused"
        )


class WindowsCompactedError(LakeboundError, runbook="windows-refused", is_refusal=True, is_seen_by_a_start_alone=True):
    """Kafka compacts the topic of a pipeline with state: open windows would be rebuilt of a part of their records."""

    def __init__(self, pipeline: str, problem: str) -> None:
        super().__init__(f"pipeline {pipeline!r}: {problem}. Nothing was landed. Follow the runbook windows-refused")


class WatermarkMismatchError(LakeboundError, runbook="windows-refused", is_refusal=True, is_seen_by_a_start_alone=True):
    """Open windows were rebuilt, and Spark's next watermark is another one than that of the stream before."""

    def __init__(self, pipeline: str, expected_ms: int, found_ms: int) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: after the rebuild of open windows Spark's next watermark is {found_ms} ms, and should be "
            f"{expected_ms} ms: the records between the horizon and the next offsets have changed, or the code that reads "
            f"them. Nothing was landed. Check whether the code was changed (also a Python function that it calls), or "
            f"the topic was compacted or its records were deleted. Follow the runbook windows-refused"
        )


class WindowRowsError(LakeboundError, runbook="windows-refused", is_refusal=True, is_seen_by_a_start_alone=True):
    """Rows of closed windows cannot be landed."""

    def __init__(self, pipeline: str, reason: str) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: rows of closed windows cannot land: {reason}. Nothing of the batch was committed. Follow "
            f"the runbook windows-refused"
        )


class WindowValueError(LakeboundError, runbook="windows-refused", is_refusal=True, is_seen_by_a_start_alone=True):
    """The transform of a pipeline with state raises on a value of a record, or of an aggregate."""

    def __init__(self, pipeline: str, kind: str, offsets: str) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: the transform raises {kind} on a record, or on an aggregate, of the offsets {offsets}. "
            f"With 'state' such a record is not found and set aside, and each start would raise it again. Nothing of the batch "
            f"was committed. Follow the runbook windows-refused"
        )


class RealTimeRefusedError(LakeboundError, is_refusal=True, is_seen_by_a_start_alone=True):
    """A pipeline cannot run in real time: Spark refuses it, or a record could get lost."""

    def __init__(self, pipeline: str, reason: str) -> None:
        super().__init__(f"pipeline {pipeline!r} cannot run with freshness: real_time: {reason}; use freshness: 0ms")


class TransformFailsError(LakeboundError, runbook="quarantine-flood", is_refusal=True, is_seen_by_a_start_alone=True):
    """The transform raises on more records of a batch than are put into quarantine for it: it is the user's to mend."""

    def __init__(
        self, pipeline: str, transform: str, how_many: str, kind: str | None, place: str | None, text: str | None = None
    ) -> None:
        self.how_many = how_many
        first = f" (the first: {kind} at {place}{f', {text}' if text else ''})" if kind and place else ""
        super().__init__(
            f"pipeline {pipeline!r}: transform {transform}: raises an error on {how_many}{first}; nothing of the batch was "
            f"committed. Change it so that it returns null for such values, or leaves them out (try_cast, try_divide, a "
            f"filter); `lakebound try {pipeline}` shows the error. The objective quarantine_rate (stop_at) does not apply "
            f"here: it counts records that are quarantined one by one. Follow the runbook quarantine-flood"
        )


class HeldError(LakeboundError):
    """The pipeline is held: nothing may run until it is started again."""

    def __init__(self, pipeline: str, reason: str) -> None:
        super().__init__(
            f"pipeline {pipeline!r} is held ({reason}); when the reason is resolved, start it: lakebound start {pipeline}"
        )


class ControlFileError(LakeboundError, runbook="control-files"):
    """A file of the state folder is damaged, without which nothing can be asked of a pipeline."""

    def __init__(self, pipeline: str, folder: object, reason: str) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: a file in {folder} cannot be read: {reason}; `lakebound status {pipeline}` names it. "
            f"Nothing was changed. Follow the runbook control-files"
        )


class SubmitFailedError(LakeboundError):
    """The Spark application could not be started."""

    def __init__(self, pipeline: str, reason: str) -> None:
        super().__init__(f"pipeline {pipeline!r} could not be submitted: {reason}")


class SubmitUnknownError(SubmitFailedError):
    """Whether the Spark application was started is unknown: the request was sent, and the answer did not come."""

    def __init__(self, pipeline: str, reason: str) -> None:
        super().__init__(
            pipeline, f"{reason}. It may have been started anyway, so no other application is submitted for some minutes"
        )


class ServiceError(LakeboundError):
    """An embedded service did not start, or did not stop."""

    def __init__(self, service: str, reason: str, log: Path | None = None) -> None:
        super().__init__(f"{service}: {reason}" + (f"; its log is {log}" if log else ""))


class DeadlineExceededError(LakeboundError):
    """Something that was waited for did not happen in time."""

    def __init__(self, what: str, deadline_seconds: float) -> None:
        super().__init__(f"timeout: waited {deadline_seconds:g} s for {what}")


class OffsetBeyondEndError(LakeboundError, runbook="offsets-beyond-end", is_refusal=True):
    """The ledger holds offsets that Kafka does not have: the topic was truncated, or it is another broker."""

    def __init__(self, topic: str, partition: int, landed: int, latest: int) -> None:
        super().__init__(
            f"topic {topic!r} partition {partition}: the ledger has offsets up to {landed}, but Kafka ends at {latest}; "
            f"nothing was written. Check bootstrap_servers, then follow the runbook offsets-beyond-end"
        )


class TableRestoredError(LakeboundError, runbook="table-restored", is_refusal=True):
    """A Delta table was restored by hand: what it holds is no longer what its ledger says.

    Attributes:
        restored_to: The version whose rows it has now, where the log says so.
    """

    def __init__(self, table: str, version: int, restored_to: int | None = None) -> None:
        self.restored_to = restored_to
        super().__init__(
            f"table {table} was restored in version {version} without a ledger entry, so it is unknown which offsets it "
            f"contains; nothing was written. Follow the runbook table-restored"
        )


class TableFeatureError(LakeboundError, runbook="table-feature", is_refusal=True, is_seen_by_a_start_alone=True):
    """Somebody has given a table a feature of its format that Lakebound does not write rightly: it writes nothing more to it.

    Attributes:
        table: Id of the table.
        feature: Its name in the format's own words, such as ``columnMapping``.
    """

    def __init__(self, table: str, feature: str, what_to_do: str) -> None:
        self.table, self.feature = table, feature
        super().__init__(
            f"table {table} uses {feature}, which Lakebound does not write; nothing was written, records wait in Kafka: "
            f"{what_to_do}. Follow the runbook table-feature"
        )


class NameMappingError(TableFeatureError, runbook="schema-changed"):
    """Files without field ids would be read into other columns than the ones for which they were written."""

    def __init__(self, table: str, column: str, mapping: str) -> None:
        self.table, self.feature = table, "schema.name-mapping.default"
        LakeboundError.__init__(
            self,
            f"table {table}: its name mapping gives the values that files without field ids hold for the column {column} to "
            "another column: somebody renamed or dropped that column, and added another one of its name. Follow the runbook "
            "schema-changed. The mapping that is right for these files: ALTER TABLE … SET TBLPROPERTIES "
            f"('schema.name-mapping.default' = '{mapping}')",
        )


class UnknownTableError(LakeboundError, is_seen_by_a_start_alone=True):
    """A pipeline has no table of the name that was asked for, or several."""

    def __init__(self, pipeline: str, name: str, known: list[str]) -> None:
        super().__init__(f"pipeline {pipeline!r} has no table {name!r}, or more than one; its tables: {', '.join(known)}")


class LedgerBehindError(LakeboundError, runbook="ledger-behind", is_refusal=True):
    """A table holds more than its newest reachable entry says."""

    def __init__(self, table: str, reason: str) -> None:
        super().__init__(
            f"table {table}: {reason}, so the ledger is older than the table, and continuing would land rows twice; nothing "
            f"was written. Follow the runbook ledger-behind"
        )


class QuarantineFloodError(LakeboundError, runbook="quarantine-flood", is_refusal=True):
    """The share of quarantined records reached the limit at which the pipeline's author wants the application to end."""

    def __init__(self, pipeline: str, found: str, stop_at: float) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: {found}. The application ended and holds the pipeline, because "
            f"objectives.quarantine_rate.stop_at is {stop_at:.1%}; each record that it read is in the tables or in quarantine. "
            f"Follow the runbook quarantine-flood"
        )


class CrashLoopError(LakeboundError, runbook="crash-loop", is_refusal=True):
    """Starts in a row landed nothing: starting again would meet the same."""

    def __init__(self, pipeline: str, situation: str) -> None:
        super().__init__(f"pipeline {pipeline!r}: {situation}. Follow the runbook crash-loop")


def error_named(name: str | None) -> type[LakeboundError]:
    """Return the class of an error from its name in a file; the root where no class of this process has the name.

    Subclasses inherit the page, so the root's page stands for each error without one of its own.
    """
    waiting = [LakeboundError]
    while waiting:
        found = waiting.pop()
        if found.__name__ == name:
            return found
        waiting.extend(found.__subclasses__())
    return LakeboundError
