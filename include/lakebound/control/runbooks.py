"""The pages that findings, refusals and incidents of Lakebound's own pipelines point to: files in include/runbooks."""

from __future__ import annotations

from lakebound import errors

RUNBOOKS = (
    "application-dead",
    "bad-entry",
    "broker-unavailable",
    "catalog-behind",
    "clock-difference",
    "commit-failed",
    "control-files",
    "crash-loop",
    "data-loss-near",
    "disk-full",
    "foreign-table",
    "hanging-transaction",
    "interior-gap",
    "lag",
    "ledger-behind",
    "lease-held",
    "missing-secret",
    "newer-entry",
    "no-ledger",
    "offsets-beyond-end",
    "quarantine-flood",
    "reference-refused",
    "reference-stale",
    "refused",
    "retention-passed",
    "rows-changed",
    "schema-changed",
    "stall",
    "state-away",
    "state-folder",
    "table-dropped",
    "table-feature",
    "table-restored",
    "table-unreadable",
    "tables-disagree",
    "target-store",
    "target-topic",
    "topic-missing",
    "topic-recreated",
    "transform-refused",
    "two-drivers",
    "unknown-fields",
    "validation-failed",
)
"""Every page that a pipeline's finding, refusal or incident may name."""

REFUSAL_RUNBOOKS = frozenset(
    error.runbook for error in vars(errors).values() if isinstance(error, type) and issubclass(error, errors.LakeboundError)
) - {
    errors.LakeboundError.runbook,
    errors.BrokerUnavailableError.runbook,
    errors.ControlFileError.runbook,
    errors.CrashLoopError.runbook,
    errors.DiskFullError.runbook,
    errors.OpenTransactionError.runbook,
    errors.QuarantineFloodError.runbook,
}
"""The pages of what keeps an application from starting until a person has decided.

A flood of bad records keeps none from starting: it ends one that runs."""
