"""The expectations of a pipeline's records, as its author writes them: frozen models without unknown keys."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from lakebound.control.findings import Severity
from lakebound.frozen import Frozen
from lakebound.spec.table import NAME

DEFAULT_SUITE = "default"
DAY_SECONDS = 86_400.0

OnFailure = Literal["alert", "quarantine", "stop"]
Share = Annotated[float, Field(gt=0, le=1)]


def _in_one_line(text: str) -> str:
    if text.splitlines() not in ([], [text]) or "\t" in text:
        raise ValueError("must be in one line: it is a name in messages")
    return text


OneLine = Annotated[str, AfterValidator(_in_one_line)]


class _Expectation(Frozen):
    expect: str = Field(description="A GX name such as expect_column_values_to_be_between, or one of Lakebound's own kinds.")
    name: OneLine = Field(default="", max_length=200, description="Its name in findings, and as a quarantine reason.")
    severity: Severity = Severity.WARNING
    suite: str = Field(default=DEFAULT_SUITE, pattern=NAME)
    tables: tuple[str, ...] = Field(default=(), description="Names or format:name; default: every table of the pipeline.")
    description: str = ""

    @property
    def label(self) -> str:
        """Its name; without one, made from its kind and columns, in one line. It is unique in its file."""
        return self.name or " ".join(f"{self.expect}({', '.join(self.subjects())})".split())

    def subjects(self) -> tuple[str, ...]:
        """Return its columns, rule or table, for its name."""
        return ()


class GxExpectation(_Expectation):
    """An expectation of Great Expectations, by its name and its own arguments."""

    # The prefix keeps Lakebound's own kinds from being read as these when a file is loaded from JSON.
    expect: str = Field(pattern="^expect_")
    kwargs: dict[str, Any] = Field(default_factory=dict)
    where: str | None = Field(default=None, min_length=1, description="Only rows for which this SQL condition is true.")

    def subjects(self) -> tuple[str, ...]:
        """Return its columns, and its condition."""
        columns = [self.kwargs.get(key) for key in ("column", "column_A", "column_B")]
        listed = self.kwargs.get("column_list")
        return tuple(str(one) for one in (*columns, *(listed if isinstance(listed, list) else ()), self.where) if one)


class RowsToSatisfy(_Expectation):
    """Each row meets a condition in SQL; a row for which it is null counts as good."""

    expect: Literal["rows_to_satisfy"]
    rule: str = Field(min_length=1, description="Condition in SQL, such as total >= 0 OR status = 'cancelled'.")
    where: str | None = Field(default=None, min_length=1)
    mostly: Share = 1.0

    def subjects(self) -> tuple[str, ...]:
        """Return the rule."""
        return (self.rule,)


class UniqueOverWindow(_Expectation):
    """No two rows of the window have the same values in these columns; the window ends with the validated range."""

    expect: Literal["unique_over_window"]
    columns: tuple[str, ...] = Field(min_length=1)
    over_seconds: float | None = Field(default=None, gt=0, description="Window before the range's end, in seconds.")
    over_commits: int | None = Field(default=None, ge=1, description="Window before the range's end, in commits.")
    mostly: Share = 1.0

    @model_validator(mode="after")
    def _one_window(self) -> UniqueOverWindow:
        if self.over_seconds is not None and self.over_commits is not None:
            raise ValueError("give either over_seconds or over_commits")
        return self

    @property
    def window_seconds(self) -> float | None:
        """Its length; None if it is given in commits."""
        return None if self.over_commits is not None else self.over_seconds or DAY_SECONDS

    def subjects(self) -> tuple[str, ...]:
        """Return the columns."""
        return self.columns


class Fresh(_Expectation):
    """A share of the rows was committed within ``max_seconds`` after Kafka's time of the record."""

    expect: Literal["fresh"]
    max_seconds: float = Field(gt=0)
    share: Share = 0.99


class UsualVolume(_Expectation):
    """The rows per minute are within a number of standard deviations of the earlier ranges."""

    expect: Literal["usual_volume"]
    deviations: float = Field(default=4.0, gt=0)
    past_seconds: float = Field(default=DAY_SECONDS, gt=0)
    min_ranges: int = Field(default=10, ge=2, description="Not evaluated before there are this many earlier ranges.")


class ValuesInTable(_Expectation):
    """The values of some columns exist in another table; rows with a null in one of them are ignored."""

    expect: Literal["values_in_table"]
    columns: dict[str, str] = Field(min_length=1, description="Own column to the other table's column.")
    table: str = Field(pattern=r"^(delta|iceberg):[a-z][a-z0-9_.]*$", description="format:name, in the same warehouse.")
    mostly: Share = 1.0

    def subjects(self) -> tuple[str, ...]:
        """Return columns and table."""
        return (*self.columns, self.table)


Expectation = GxExpectation | RowsToSatisfy | UniqueOverWindow | Fresh | UsualVolume | ValuesInTable

OWN_KINDS: dict[str, type[Expectation]] = {
    "rows_to_satisfy": RowsToSatisfy,
    "unique_over_window": UniqueOverWindow,
    "fresh": Fresh,
    "usual_volume": UsualVolume,
    "values_in_table": ValuesInTable,
}
"""Lakebound's own kinds; their results are reported like those of Great Expectations."""


class ExpectationHead(Frozen):
    """The file, with expectations that are not parsed yet."""

    pipeline: str = Field(pattern=NAME)
    on_failure: OnFailure = "alert"
    every_seconds: float = Field(default=60.0, ge=10, description="Shortest time between two validations of new commits.")
    resolve_after_seconds: float = Field(
        default=900.0, ge=0, description="A finding ends when its expectation has been met for this time."
    )
    max_rows_per_range: int = Field(default=5_000_000, ge=1, description="A longer range is validated in parts.")
    keep_runs: int = Field(default=50, ge=1, description="Number of runs whose results and pages are kept.")
    expectations: tuple[dict[str, Any], ...] = Field(min_length=1)


class ExpectationFile(ExpectationHead):
    """What is expected of one pipeline's records, and what happens to records that fail.

    ``quarantine`` copies the records of failures that are warnings or critical; ``stop`` stops only for critical ones.
    """

    expectations: tuple[Expectation, ...]  # type: ignore[assignment]

    def of(self, table: str, suite: str | None = None) -> tuple[Expectation, ...]:
        """Return the expectations of a table (by its id), in one suite or in all."""
        names = {table, table.partition(":")[2]}
        return tuple(
            one for one in self.expectations if (not one.tables or names & set(one.tables)) and suite in (None, one.suite)
        )
