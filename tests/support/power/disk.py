"""A disk that may lose, at a power cut, whatever was not synced: any subset of it, names as well as contents.

It knows of a file system what fsync(2) promises and no more. A file's content is there once the file was synced; before, the
disk has what was synced last, or a part of the new content, or all of it. A name is there, or is gone, once its folder was
synced; before, each change of names may have got to the disk or not, in any order. A rename is one change.

States are looked at before each sync and at the end: what a cut between two syncs leaves is among them, since the operations
after it are not synced and can be dropped.
"""

from __future__ import annotations

import itertools
import math
import os
import random
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = 0
"""The folder that is on the disk from the beginning."""

Key = tuple[int, str]
"""A folder and a name in it."""


@dataclass(frozen=True)
class Wrote:
    """A file has this content now; of a link: what it leads to."""

    node: int
    content: bytes
    mtime_ns: int = 0
    is_link: bool = False


@dataclass(frozen=True)
class Named:
    """Names changed, in one step; None: the name is gone."""

    changes: tuple[tuple[Key, int | None], ...]


@dataclass(frozen=True)
class Synced:
    """A file's content, or a folder's names, are on the disk."""

    node: int


@dataclass(frozen=True)
class Reached:
    """The work came to a place from which the disk's state is judged by what is said here."""

    mark: str


Event = Wrote | Named | Synced | Reached


@dataclass(frozen=True)
class State:
    """What a power cut may leave.

    Attributes:
        files: Content, time of change, and whether it is a link, by path.
        folders: Their paths.
        mark: The last place that the work had come to.
        event: How many events there were until the cut.
        lost: How much of what was not synced is lost.
    """

    files: Mapping[str, Wrote]
    folders: frozenset[str]
    mark: str
    event: int
    lost: int

    def identity(self) -> tuple[object, ...]:
        """What tells two states apart."""
        files = frozenset((path, hash(one.content)) for path, one in self.files.items())
        return self.mark, files, self.folders

    def put_at(self, root: Path) -> None:
        """Make a folder hold this and nothing else."""
        for found in root.iterdir():
            shutil.rmtree(found) if found.is_dir() and not found.is_symlink() else found.unlink()
        for folder in sorted(self.folders):
            (root / folder).mkdir()
        for name, one in self.files.items():
            if one.is_link:
                os.symlink(one.content.decode(), root / name)
            else:
                (root / name).write_bytes(one.content)
                os.utime(root / name, ns=(one.mtime_ns, one.mtime_ns))


@dataclass
class _Disk:
    """What is certainly on the disk, and what may be."""

    names: dict[Key, int] = field(default_factory=dict)
    contents: dict[int, Wrote] = field(default_factory=dict)
    pending: list[dict[Key, int | None]] = field(default_factory=list)
    written: dict[int, Wrote] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        if isinstance(event, Wrote):
            self.written[event.node] = event
        elif isinstance(event, Named):
            self.pending.append(dict(event.changes))
        elif isinstance(event, Synced):
            self._sync(event.node)

    def _sync(self, node: int) -> None:
        if node in self.written:
            self.contents[node] = self.written.pop(node)
        for change in self.pending:
            of_folder = [key for key in change if key[0] == node]
            # A rename whose old name is certainly gone is there under the new one.
            for key in change if any(change[key] is None for key in of_folder) else of_folder:
                self._name(self.names, key, change[key])
            for key in [key for key in change if key in of_folder or any(change[one] is None for one in of_folder)]:
                del change[key]
        self.pending = [change for change in self.pending if change]

    @staticmethod
    def _name(names: dict[Key, int], key: Key, node: int | None) -> None:
        if node is None:
            names.pop(key, None)
        else:
            names[key] = node

    def options(self, seed: int, most: int) -> Iterator[tuple[list[bool], dict[int, int]]]:
        """Yield which changes of names get to the disk, and how much of each written file: 0 nothing, 1 a part, 2 all."""
        nodes = list(self.written)
        ranges = [range(2)] * len(self.pending) + [range(3)] * len(nodes)
        chosen: Iterator[tuple[int, ...]] | list[tuple[int, ...]]
        if math.prod(map(len, ranges)) <= most:
            chosen = itertools.product(*ranges)
        else:
            chosen = _sample([len(one) for one in ranges], random.Random(seed), most)
        for choice in chosen:
            yield (
                [bool(one) for one in choice[: len(self.pending)]],
                dict(zip(nodes, choice[len(self.pending) :], strict=True)),
            )

    def state(self, kept: list[bool], parts: Mapping[int, int], mark: str, event: int) -> State:
        names = dict(self.names)
        for change, is_kept in zip(self.pending, kept, strict=True):
            for key, node in change.items() if is_kept else ():
                self._name(names, key, node)
        below: dict[int, list[tuple[str, int]]] = {}
        for (folder, name), node in names.items():
            below.setdefault(folder, []).append((name, node))
        files: dict[str, Wrote] = {}
        folders: set[str] = set()
        ways = [("", ROOT)]
        while ways:
            path, folder = ways.pop()
            for name, node in below.get(folder, ()):
                at = f"{path}{name}"
                if node in self.written or node in self.contents:
                    files[at] = self._content(node, parts.get(node, 2))
                else:
                    folders.add(at)
                    ways.append((at + "/", node))
        lost = sum(not one for one in kept) + sum(one < 2 for one in parts.values())
        return State(files, frozenset(folders), mark, event, lost)

    def _content(self, node: int, part: int) -> Wrote:
        old, new = self.contents.get(node), self.written.get(node)
        if new is None or (part == 0 and old is not None):
            assert old is not None
            return old
        before = old.content if old is not None else b""
        if part == 2 or new.is_link:
            return new
        if part == 0:
            return Wrote(node, b"", new.mtime_ns)
        pairs = enumerate(zip(before, new.content, strict=False))
        shared = next((at for at, (one, other) in pairs if one != other), min(len(before), len(new.content)))
        middle = (shared + len(new.content)) // 2
        return Wrote(node, new.content[:middle] + before[middle:], new.mtime_ns)


def states(events: list[Event], *, seed: int, most: int) -> Iterator[State]:
    """Yield every distinct state that a power cut may leave, whenever it comes after the first place that the work comes to.

    Args:
        events: What was done.
        seed: Of the sample, where a moment has more states than ``most``.
        most: States of one moment.
    """
    disk, mark, seen = _Disk(), "", set()
    for number, event in enumerate([*events, Synced(-1)]):
        if isinstance(event, Synced) and mark:
            for kept, parts in disk.options(seed + number, most):
                state = disk.state(kept, parts, mark, number)
                if state.identity() not in seen:
                    seen.add(state.identity())
                    yield state
        if isinstance(event, Reached):
            mark = event.mark
        disk.take(event)


def _sample(sizes: list[int], chance: random.Random, most: int) -> list[tuple[int, ...]]:
    """Return all or nothing, one alone lost, one alone kept, and others by chance; no more than asked for."""
    everything = tuple(size - 1 for size in sizes)
    one_lost = [(*everything[:at], 0, *everything[at + 1 :]) for at in range(len(sizes))]
    one_kept = [tuple(everything[at] if at == only else 0 for at in range(len(sizes))) for only in range(len(sizes))]
    torn = [(*everything[:at], 1, *everything[at + 1 :]) for at in range(len(sizes)) if sizes[at] == 3]
    single = [*one_lost, *torn, *one_kept]
    chance.shuffle(single)
    chosen = dict.fromkeys([everything, (0,) * len(sizes), *single[: most * 2 // 3]])
    for _ in range(2 * most):
        if len(chosen) >= most:
            break
        share = chance.choice((0.2, 0.5, 0.8, 0.95))
        chosen[tuple(size - 1 if chance.random() < share else chance.randrange(size) for size in sizes)] = None
    return list(chosen)
