"""Epochs in the ledgers of what a pipeline lands in beside its tables, as far as these answer."""

from __future__ import annotations

from lakebound.landing.other_target import OtherTarget
from lakebound.landing.target_kind import answers, target_kinds
from lakebound.spec.pipeline import PipelineSpec


def newest_epoch(spec: PipelineSpec) -> int:
    """Return the newest epoch in the ledgers of these targets, as far as they answer now; 0 without any.

    The tables have every epoch before them. So this only matters where tables and state are both new.
    """
    return max((epoch for kind in target_kinds() for epoch in answers(kind, spec, _epoch)), default=0)


def newest_landed_other_epoch(spec: PipelineSpec) -> int:
    """Return the epoch of the newest commit with rows in targets that need no table beside them; 0 without any."""
    # Where rows land in tables, too, these say it.
    alone = [kind for kind in target_kinds() if kind.stands_alone]
    return max((epoch for kind in alone for epoch in answers(kind, spec, _landed_epoch)), default=0)


def _epoch(target: OtherTarget) -> int:
    return target.read_ledger().epoch


def _landed_epoch(target: OtherTarget) -> int:
    return next((one.entry.epoch for one in target.entries() if one.entry.rows), 0)
