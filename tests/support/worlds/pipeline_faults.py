"""Every fault of a world: control files and checkpoint here, tables, Kafka and applications beside."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.support.worlds.pipeline_application_faults import application_faults, number_faults
from tests.support.worlds.pipeline_fault import Break, Fault, dropping
from tests.support.worlds.pipeline_table_faults import kafka_faults, table_faults
from tests.support.worlds.pipeline_worlds import (
    APPS,
    TOPIC,
    World,
)


def faults_of(world: World) -> list[Fault]:
    """Return every fault that the world can have."""
    return [
        Fault("nothing else", lambda _: None, frozenset({"application-dead"})),
        *_file_faults(world),
        *_checkpoint_faults(world),
        *table_faults(world),
        *kafka_faults(),
        *application_faults(world),
        *number_faults(),
    ]


# --- control files -----------------------------------------------------------------------------------------------

BLOCKING = ("desired.json", "submission.json")


def _file_faults(world: World) -> Iterator[Fault]:
    for name in ("lease.json", *BLOCKING, "progress.json", f"outcomes/{APPS[2]}.json"):
        if name not in world.files:
            continue
        torn = "control-file-unreadable" if name in BLOCKING else "control-file-torn"
        lost = frozenset({"state-folder-behind"} if name == "lease.json" and world.phase != "lease taken" else ())
        yield Fault(f"{name} missing", _without(name), lost)
        yield Fault(f"{name} empty", _as(name, lambda text: ""), frozenset({torn}))
        for share in (0.1, 0.5, 0.95):
            yield Fault(f"{name} cut at {share:.0%}", _as(name, _cut(share)), frozenset({torn}))
        for at in _flip_places(world.files[name]):
            yield Fault(f"{name} flipped at byte {at}", _as(name, _flip(at)))
        stale = name.replace(APPS[2], APPS[1])
        yield Fault(f"{name} an older copy", _as(name, lambda text, stale=stale: world.stale[stale]))
        yield Fault(f"{name} another pipeline's", _as(name, lambda text: text.replace("orders", "payments")))
    yield Fault("the state folder lost", lambda w: w.files.clear(), frozenset({"state-folder-behind", "application-dead"}))


def _without(name: str) -> Break:
    return lambda world: world.files.pop(name, None) and None  # type: ignore[func-returns-value]


def _as(name: str, change: Callable[[str], str]) -> Break:
    def breaks(world: World) -> None:
        world.files[name] = change(world.files[name])

    return breaks


def _cut(share: float) -> Callable[[str], str]:
    return lambda text: text[: max(1, int(len(text) * share))]


def _flip(at: int) -> Callable[[str], str]:
    return lambda text: text[:at] + chr(ord(text[at]) ^ 1) + text[at + 1 :]


def _flip_places(text: str) -> list[int]:
    """Return a brace, a letter of a key, a digit of the first number and one of the last: each class of byte."""
    digits = [at for at, char in enumerate(text) if char.isdigit()]
    return [0, 3, *digits[:1], *digits[-1:]]


# --- checkpoint --------------------------------------------------------------------------------------------------


def _checkpoint_faults(world: World) -> Iterator[Fault]:
    folder = f"checkpoints/{APPS[2]}/0/"
    offsets = sorted(name for name in world.files if name.startswith(f"{folder}offsets/"))
    if not offsets:
        return
    commits = sorted(name for name in world.files if name.startswith(f"{folder}commits/"))
    last, before = offsets[-1], offsets[-2]
    lost, torn = frozenset({"checkpoint-lost"}), frozenset({"checkpoint-lost"})
    yield Fault("checkpoint deleted", dropping("checkpoints/"), lost)
    yield Fault("offsets deleted", dropping(f"{folder}offsets"))
    yield Fault("commits deleted", dropping(f"{folder}commits"))
    yield Fault("last offset log missing", _without(last))
    yield Fault("older copy of the last offset log", _as(last, lambda text: world.files[before]))
    yield Fault("another topic's offset log", _as(last, lambda text: text.replace(TOPIC, "payments")))
    yield Fault("last offset log flipped", _as(last, _flip(0)), torn)
    for share in (0.0, 0.01, 0.5, 0.95):
        yield Fault(f"last offset log cut at {share:.0%}", _as(last, lambda text, s=share: text[: int(len(text) * s)]), torn)
    yield Fault("last commit log empty", _as(commits[-1], lambda text: ""), torn)
    yield Fault("last commit log missing", _without(commits[-1]))
