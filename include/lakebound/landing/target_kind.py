"""What a kind of target beside tables is to the rest of the project: how its targets are opened, looked at and compared.

A kind is one module in the folder ``targets``; its constant ``TARGET_KIND`` is the kind. A pipeline names its targets under the
kind's key in the YAML. What Spark's side needs of it is in ``lakebound_spark.stream.targets``.
"""

from __future__ import annotations

import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, Literal, TypeVar

from lakebound.errors import BrokerUnavailableError, LakeboundError
from lakebound.landing import targets
from lakebound.landing.other_target import OtherTarget
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.target import TargetSpec

T = TypeVar("T")


@dataclass(frozen=True)
class Condition:
    """What a rule of a kind finds: a finding of the doctor.

    Attributes:
        rule: Its name, in kebab-case; it never changes.
        verdict: What it means for a start.
        sentence: What is wrong, what it costs and what must be done.
        runbook: Name of the page.
        evidence: Facts that decide, by name.
    """

    rule: str
    verdict: Literal["healthy", "starting", "needs_person"]
    sentence: str
    runbook: str
    evidence: Mapping[str, Any] = field(default_factory=dict)


TargetRule = Callable[[Any, float], Iterator[Condition]]
"""Judges what ``TargetKind.look`` returned, at a time in epoch seconds. Pure."""


class TargetKind(ABC):
    """One kind. All of it only looks: who writes is on Spark's side."""

    key: str
    """Of the YAML, such as ``to_topics``."""
    rules: tuple[TargetRule, ...] = ()
    """What the doctor says of its targets."""
    is_on_source_broker: bool = False
    """Whether its targets are on the broker from which the pipeline reads: while that is away, nothing is asked of them."""
    stands_alone: bool = False
    """Whether a pipeline may have no table beside such a target."""
    not_compared: str = ""
    """Why a deep proof compared no rows of a target, where ``scan_sources`` returned None."""

    @property
    def module(self) -> str:
        """Name of its module in the folder ``targets``, here and on Spark's side."""
        return type(self).__module__.rpartition(".")[2]

    def specs(self, pipeline: PipelineSpec) -> Sequence[TargetSpec]:
        """Return what a pipeline says of its targets of this kind."""
        return pipeline.targets_by_key[self.key]

    @abstractmethod
    def open(self, one: Any, pipeline: PipelineSpec) -> OtherTarget:
        """Return a target for who only looks; nothing is connected yet.

        Args:
            one: What the pipeline says of it.
            pipeline: The pipeline.
        """

    @abstractmethod
    def look(self, pipeline: PipelineSpec) -> Any:
        """Return what the targets are like, for the rules; raises nothing for what is wrong with them."""


@cache
def target_kinds() -> tuple[TargetKind, ...]:
    """Return every kind, in the order of their modules' names from the last to the first: topics before stores."""
    names = sorted((module.name for module in pkgutil.iter_modules(targets.__path__)), reverse=True)
    return tuple(import_module(f"{targets.__name__}.{name}").TARGET_KIND for name in names)


def answers(kind: TargetKind, pipeline: PipelineSpec, ask: Callable[[OtherTarget], T]) -> Iterator[T]:
    """Yield what each target of a kind answers now; those that cannot answer are left out.

    Args:
        kind: The kind.
        pipeline: The pipeline.
        ask: Asks a target, which is closed afterwards.
    """
    for one in kind.specs(pipeline):
        target = kind.open(one, pipeline)
        try:
            found = ask(target)
        except BrokerUnavailableError:
            return  # one wait is enough
        except LakeboundError:
            continue
        finally:
            target.close()
        yield found


def opened(pipeline: PipelineSpec) -> Iterator[tuple[TargetKind, OtherTarget]]:
    """Yield every target of a pipeline beside its tables, for who only looks and closes it."""
    for kind in target_kinds():
        for one in kind.specs(pipeline):
            yield kind, kind.open(one, pipeline)
