"""Online stores as targets: what a start would refuse of them, and how they are set up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lakebound.errors import LakeboundError, StoreUnavailableError
from lakebound.landing.target_kind import Condition, TargetKind
from lakebound.landing.to_stores.open_store import open_store
from lakebound.landing.to_stores.target import StoreTarget
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.to_stores import ToStoreSpec


@dataclass(frozen=True)
class StoresLook:
    """What the stores are like, each by the store's id.

    Attributes:
        refusals: Why a start would refuse it.
        away: Why it does not answer.
        advice: What a person should know of how it is set up.
    """

    refusals: Mapping[str, str] = field(default_factory=dict)
    away: Mapping[str, str] = field(default_factory=dict)
    advice: Mapping[str, str] = field(default_factory=dict)


def target_store_refused(seen: StoresLook, now: float) -> Iterator[Condition]:
    """A store refuses the login, cannot take the rows, or is not the one that its ledger names."""
    for target, refusal in seen.refusals.items():
        yield Condition("target-store-refused", "needs_person", refusal, "target-store", {"target": target})


def target_store_away(seen: StoresLook, now: float) -> Iterator[Condition]:
    """A store does not answer: the stream waits for it, or starts when it does."""
    for target, reason in seen.away.items():
        yield Condition("target-store-away", "starting", reason, "target-store", {"target": target})


def target_store_setup(seen: StoresLook, now: float) -> Iterator[Condition]:
    """A store is set up so that it may forget something."""
    for target, advice in seen.advice.items():
        yield Condition("target-store-setup", "healthy", advice, "target-store", {"target": target})


class Stores(TargetKind):
    """Rows or counters by key in PostgreSQL or Redis, written in one transaction with their ledger."""

    key = "to_stores"
    rules = (target_store_refused, target_store_away, target_store_setup)
    not_compared = "a store holds the newest row of each key, or sums: its rows were not compared"

    def open(self, one: ToStoreSpec, pipeline: PipelineSpec) -> StoreTarget:
        """Return a store for who only looks."""
        return open_store(one, pipeline)

    def look(self, pipeline: PipelineSpec) -> StoresLook:
        """Return what the stores are like."""
        refusals: dict[str, str] = {}
        away: dict[str, str] = {}
        advice: dict[str, str] = {}
        for one in pipeline.to_stores:
            target = self.open(one, pipeline)
            try:
                target.check_ledger()
                said = target.advice()
                if said is not None:
                    advice[one.id] = f"store {one.id} at {one.place}: {said}"
            except StoreUnavailableError as exc:
                away[one.id] = str(exc)
            except LakeboundError as exc:
                refusals[one.id] = str(exc)
            finally:
                target.close()
        return StoresLook(refusals, away, advice)


TARGET_KIND = Stores()
