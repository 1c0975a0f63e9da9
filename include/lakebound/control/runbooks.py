"""The pages that findings, refusals and incidents of Lakebound's own pipelines point to: files in include/runbooks."""

from __future__ import annotations

RUNBOOKS = (
    "application-dead",
    "bad-entry",
    "broker-unavailable",
    "clock-difference",
    "commit-failed",
    "control-files",
    "crash-loop",
    "data-loss-near",
    "foreign-table",
    "interior-gap",
    "lag",
    "ledger-behind",
    "lease-held",
    "missing-secret",
    "no-ledger",
    "offsets-beyond-end",
    "refused",
    "retention-passed",
    "schema-changed",
    "stall",
    "state-folder",
    "table-dropped",
    "table-restored",
    "table-unreadable",
    "tables-disagree",
    "topic-missing",
    "topic-recreated",
    "two-drivers",
    "validation-failed",
)
"""Every page that a pipeline's finding, refusal or incident may name."""

_OF_ERRORS = {
    "BadEntryError": "bad-entry",
    "BrokerUnavailableError": "broker-unavailable",
    "CommitFailedError": "commit-failed",
    "CommitUnknownError": "commit-failed",
    "CrashLoopError": "crash-loop",
    "ForeignTableError": "foreign-table",
    "LeaseHeldError": "lease-held",
    "LedgerBehindError": "ledger-behind",
    "MissingSecretError": "missing-secret",
    "MissingTopicError": "topic-missing",
    "NoLedgerError": "no-ledger",
    "OffsetBeyondEndError": "offsets-beyond-end",
    "RetentionPassedError": "retention-passed",
    "SchemaChangedError": "schema-changed",
    "TableRestoredError": "table-restored",
    "TableUnreadableError": "table-unreadable",
    "TopicRecreatedError": "topic-recreated",
}

REFUSAL_RUNBOOKS = frozenset(_OF_ERRORS.values()) - {"broker-unavailable", "crash-loop"}
"""The pages of what keeps an application from starting until a person has decided."""


def runbook_of(error_class: str | None) -> str:
    """Return the page of a refusal, by the class of its error; ``refused`` for one without a page of its own."""
    return _OF_ERRORS.get(error_class or "", "refused")
