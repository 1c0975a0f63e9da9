"""One way in which a world is broken, and what is expected of the doctor then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.support.worlds.pipeline_worlds import World

Break = Callable[[World], None]


@dataclass(frozen=True)
class Fault:
    """One way in which a world is broken.

    Attributes:
        name: For messages.
        breaks: Does it.
        expects: Rules of which a finding is expected.
        cautious: The doctor asks a person although a start would land everything: why it does.
        lives: An application lives: nothing is started.
    """

    name: str
    breaks: Break
    expects: frozenset[str] = frozenset()
    cautious: str = ""
    lives: bool = False


def both(first: Break, second: Break) -> Break:
    """Return the two, one after the other."""

    def breaks(world: World) -> None:
        first(world)
        second(world)

    return breaks


def dropping(prefix: str) -> Break:
    """Return the deletion of all files whose path begins so."""

    def breaks(world: World) -> None:
        for name in [name for name in world.files if name.startswith(prefix)]:
            del world.files[name]

    return breaks
