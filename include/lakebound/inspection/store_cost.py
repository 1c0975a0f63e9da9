"""What the commits of a pipeline cost in an object store: requests per hour, dollars per month. Pure.

A store takes money for each request, so that a table that is committed four times a second costs more by its commits than by
its bytes. Storage, traffic, maintenance and readers are not in these figures.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakebound.spec.pipeline import PipelineSpec, parse_freshness
from lakebound.spec.warehouse import PricesSpec, StoreSpec, WarehouseSpec
from lakebound.tables.format_rules import rules_of

HOURS_PER_MONTH = 730.0
_HOUR_SECONDS = 3600.0


@dataclass(frozen=True)
class Requests:
    """Requests to a store, by what they cost.

    Attributes:
        writes: PUT, POST and LIST.
        reads: GET and HEAD. To delete costs nothing.
    """

    writes: float
    reads: float

    @property
    def total(self) -> float:
        """All of them."""
        return self.writes + self.reads

    def times(self, number: float) -> Requests:
        """Return as many times these requests."""
        return Requests(self.writes * number, self.reads * number)

    def dollars(self, prices: PricesSpec) -> float:
        """Return what they cost."""
        return (self.writes * prices.dollars_per_1000_writes + self.reads * prices.dollars_per_1000_reads) / 1000


@dataclass(frozen=True)
class StoreCost:
    """What a pipeline's commits cost.

    Attributes:
        tables: How many tables each batch is committed to.
        per_batch: Requests of a batch that has records.
        batches_per_hour: At most; None where a schedule says how often the pipeline runs.
        prices: Of the requests; None where nobody takes money for them.
    """

    tables: int
    per_batch: Requests
    batches_per_hour: float | None
    prices: PricesSpec | None

    @property
    def requests_per_hour(self) -> float | None:
        """At most: a batch without records commits nothing."""
        return None if self.batches_per_hour is None else self.per_batch.times(self.batches_per_hour).total

    @property
    def dollars_per_month(self) -> float | None:
        """At most."""
        if self.prices is None or self.batches_per_hour is None:
            return None
        return self.per_batch.times(self.batches_per_hour * HOURS_PER_MONTH).dollars(self.prices)

    def sentence(self) -> str:
        """Return it in words."""
        counted = "one table" if self.tables == 1 else f"{self.tables} tables"
        said = f"a batch into {counted} of the object store is {self.per_batch.total:.1f} requests"
        if self.requests_per_hour is None:
            dollars = None if self.prices is None else self.per_batch.times(1000).dollars(self.prices)
            return said if dollars is None else f"{said}; 1,000 batches cost {_money(dollars)}"
        said += f", at most {self.requests_per_hour:,.0f} an hour"
        return said if self.dollars_per_month is None else f"{said}, {_money(self.dollars_per_month)} a month"


def store_cost(spec: PipelineSpec, warehouse: WarehouseSpec) -> StoreCost | None:
    """Return what the commits of a pipeline cost; None where its tables are in a folder, or its targets are no tables.

    Args:
        spec: The pipeline.
        warehouse: Where its tables are.
    """
    formats = [table.format for table in spec.tables]
    if warehouse.is_local or not formats:
        return None
    interval_seconds = parse_freshness(spec.tables_freshness())
    batches = None if interval_seconds is None else _HOUR_SECONDS / max(interval_seconds, 0.001)
    return StoreCost(len(formats), batch_requests(formats), batches, _prices(warehouse.store))


def batch_requests(formats: Iterable[str]) -> Requests:
    """Return the requests of a batch with one data file for each table, by the tables' formats."""
    commits = [rules_of(one).commit_requests for one in formats]
    return Requests(sum(writes for writes, _ in commits), sum(reads for _, reads in commits))


def _prices(store: StoreSpec | None) -> PricesSpec | None:
    """Return the prices that count: a server of one's own, which an endpoint names, sends no bill unless prices are said."""
    if store is None:
        return PricesSpec()
    return store.prices or (PricesSpec() if store.endpoint is None else None)


def _money(dollars: float) -> str:
    return f"{dollars:,.2f} dollars" if dollars < 10 else f"{dollars:,.0f} dollars"
