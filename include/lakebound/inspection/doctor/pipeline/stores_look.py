"""Looks at the stores of a pipeline: whether a start would refuse one, and how it is set up. Reads only."""

from __future__ import annotations

from lakebound.errors import LakeboundError, StoreUnavailableError
from lakebound.inspection.doctor.pipeline.facts import StoresLook
from lakebound.landing.to_stores.open_store import open_stores
from lakebound.spec.pipeline import PipelineSpec


def look_at_stores(spec: PipelineSpec) -> StoresLook:
    """Return what the stores are like."""
    refusals: dict[str, str] = {}
    away: dict[str, str] = {}
    advice: dict[str, str] = {}
    for target in open_stores(spec):
        try:
            target.check_ledger()
            said = target.advice()
            if said is not None:
                advice[target.spec.id] = f"store {target.spec.id} at {target.spec.place}: {said}"
        except StoreUnavailableError as exc:
            away[target.spec.id] = str(exc)
        except LakeboundError as exc:
            refusals[target.spec.id] = str(exc)
        finally:
            target.close()
    return StoresLook(refusals, away, advice)
