"""How an Airflow is: its components, and which DAGs are paused. Values only; ``lakebound.local.airflow_view`` asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

COMPONENTS = ("metadatabase", "scheduler", "triggerer", "dag_processor")
"""As Airflow's address ``/api/v2/monitor/health`` names them."""


@dataclass(frozen=True)
class ComponentHealth:
    """One component, as Airflow itself says it.

    Attributes:
        is_healthy: Whether it gives signs of life; Airflow notices half a minute late that one is dead.
        age_seconds: How old its last sign of life is; None where Airflow does not say it.
    """

    is_healthy: bool
    age_seconds: float | None = None


@dataclass(frozen=True)
class AirflowHealth:
    """An Airflow as it was seen from here.

    Attributes:
        address: Of its API server, without a password.
        is_embedded: Whether ``lakebound up`` started it.
        problem: Why it did not answer; None when it did.
        components: By name; one that this Airflow never had is not among them.
        paused: Whether each DAG is paused, by its id; None where that is not known.
        paused_problem: Why that is not known, and what to do.
    """

    address: str
    is_embedded: bool = False
    problem: str | None = None
    components: Mapping[str, ComponentHealth] = field(default_factory=dict)
    paused: Mapping[str, bool] | None = None
    paused_problem: str | None = None

    @property
    def dead(self) -> tuple[str, ...]:
        """The components that give no sign of life."""
        return tuple(name for name, found in self.components.items() if not found.is_healthy)


def components_of(body: Mapping[str, Mapping[str, str | None]], now: float) -> dict[str, ComponentHealth]:
    """Return the components from the answer of ``/api/v2/monitor/health``. Pure.

    Args:
        body: The answer.
        now: Epoch seconds.
    """
    found = {}
    for name in COMPONENTS:
        said = body.get(name) or {}
        status, beat = said.get("status"), said.get(f"latest_{name}_heartbeat")
        if status is not None:
            age = None if beat is None else max(0.0, now - datetime.fromisoformat(beat).timestamp())
            found[name] = ComponentHealth(status == "healthy", age)
    return found


def told_components(components: Mapping[str, ComponentHealth], names: Iterable[str]) -> str:
    """Return components in words, each with the age of its last sign of life."""
    return ", ".join(f"{name.replace('_', ' ')}{_told_age(components[name])}" for name in names)


def _told_age(component: ComponentHealth) -> str:
    age = component.age_seconds
    return "" if age is None else f" (last sign of life {age:.0f} s ago)"
