"""Epochs in the ledgers of what a pipeline lands in beside its tables, as far as these answer."""

from __future__ import annotations

from itertools import islice

from lakebound.errors import BrokerUnavailableError, LakeboundError
from lakebound.landing.target_kind import target_kinds
from lakebound.spec.pipeline import PipelineSpec


def newest_epoch(spec: PipelineSpec) -> int:
    """Return the newest epoch in the ledgers of these targets, as far as they answer now; 0 without any.

    The tables have every epoch before them. So this only matters where tables and state are both new.
    """
    return max(_epochs(spec, landed=False), default=0)


def newest_landed_other_epoch(spec: PipelineSpec) -> int:
    """Return the epoch of the newest commit with rows in targets that need no table beside them; 0 without any."""
    return max(_epochs(spec, landed=True), default=0)


def _epochs(spec: PipelineSpec, *, landed: bool) -> list[int]:
    found: list[int] = []
    for kind in target_kinds():
        # Where rows land in tables, too, these say it.
        for one in kind.specs(spec) if kind.stands_alone or not landed else ():
            target = kind.open(one, spec)
            try:
                if landed:
                    found += islice((one.entry.epoch for one in target.entries() if one.entry.rows), 1)
                else:
                    found.append(target.read_ledger().epoch)
            except BrokerUnavailableError:
                break  # one wait is enough
            except LakeboundError:
                continue
            finally:
                target.close()
    return found
