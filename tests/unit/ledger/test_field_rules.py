"""What later commits and older versions do with each field of an entry: said once, and true of the version before, too."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import pytest

from lakebound.errors import NewerEntryError
from lakebound.frozen import FrozenRecord
from lakebound.ledger import entry as ledger
from lakebound.ledger.entry import ENTRY_KEY, Entry, EntryKind, TopicOffsets, carried, decode, encode, following
from lakebound.ledger.erased import ErasedFile
from lakebound.ledger.field_rules import CarriedOn, Required, carried_on, required_by, requirements_of
from lakebound.ledger.foreign_changes import ForeignChange
from lakebound.ledger.redo_progress import RedoProgress
from lakebound.ledger.sources import SourceVersion
from lakebound.ledger.windows import WindowPosition, WindowState

COVERAGE = {"orders": TopicOffsets(topic_id="id-1", partitions={0: ((0, 9),)})}
SAYS: dict[str, Any] = {
    "former": {"orders": (TopicOffsets(topic_id="id-0", partitions={0: ((0, 4),)}),)},
    "released": 3,
    "quarantine": "delta:quarantine.orders",
    "foreign_changes": (ForeignChange(version="7"),),
    "erased": ErasedFile(digest="a" * 64, rows=2),
    "sources": (SourceVersion(hash="0123456789ab", since_ms=1, first_offsets={"orders": {0: 4}}),),
    "schemas": {"shop": {"17": "0123456789abcdef"}},
    "newest_redo": "0b1f",
    "changes_seen": 2,
    "redo_progress": RedoProgress(plan="0123456789ab", left=3),
    "windows": WindowState(id="w", serial=2, before=WindowPosition(ends={0: 4}), after=WindowPosition(ends={0: 9})),
}
"""A value for each field that is carried on. A new one needs a line here; by it, going back to the version before is tested."""
BASE = {"pipeline", "epoch", "commit", "kind", "version", "writer", "requires", "coverage"}
"""What every version has known."""


def rules(name: str) -> list[object]:
    return [rule for rule in Entry.model_fields[name].metadata if isinstance(rule, CarriedOn | Required)]


def entry(kind: EntryKind = "land", **fields: Any) -> Entry:
    return Entry.model_validate({"kind": kind, "pipeline": "orders", "epoch": 1, "commit": "c", "coverage": COVERAGE, **fields})


def test_the_fields_that_are_carried_on_are_these() -> None:
    assert {name for name in Entry.model_fields if any(isinstance(rule, CarriedOn) for rule in rules(name))} == set(SAYS)
    assert requirements_of(Entry) == {"erased", "redo", "windows"}
    assert {"erased", "incomplete", "redo", "windows"} == ledger.KNOWN_REQUIREMENTS


@pytest.mark.parametrize("name", SAYS)
@pytest.mark.parametrize("kind", ["open", "land", "replay", "erase", "reset"])
def test_the_next_entry_repeats_what_it_does_not_say_itself(name: str, kind: EntryKind) -> None:
    before = entry(**{name: SAYS[name]})
    silent = Entry.model_fields[name].get_default(call_default_factory=True)
    decided_by_reset = kind == "reset" and name in ("former", "released", "windows")
    assert getattr(following(entry(kind), before), name) == (silent if decided_by_reset else SAYS[name])
    assert getattr(following(entry(kind), None), name) == silent
    assert getattr(carried(before), name) == SAYS[name]
    assert following(entry(kind, **{name: SAYS[name]}), entry()) == entry(kind, **{name: SAYS[name]})


@pytest.mark.parametrize("name", sorted(ledger.KNOWN_REQUIREMENTS))
def test_the_version_before_refuses_what_it_must_know_by_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = encode(entry(**{name: SAYS[name]}) if name in SAYS else entry(requires=(name,)))
    assert decode(text, "commit 7") is not None
    monkeypatch.setattr(ledger, "KNOWN_REQUIREMENTS", ledger.KNOWN_REQUIREMENTS - {name})
    with pytest.raises(NewerEntryError, match=rf"commit 7 .* needs {name}.*runbook newer-entry"):
        decode(text, "commit 7")


@pytest.mark.parametrize("name", sorted(set(Entry.model_fields) - BASE))
def test_the_version_before_passes_over_what_it_need_not_know_and_lands_on(name: str) -> None:
    """What such a version does: it has no such field, so it does not repeat it either; the offsets are the same."""
    if any(isinstance(rule, Required) for rule in rules(name)):
        return  # it refuses the entry instead
    written = entry(**{name: SAYS[name]}) if name in SAYS else entry()
    body = json.loads(encode(written))[ENTRY_KEY]
    body.pop(name, None)
    read = decode(json.dumps({ENTRY_KEY: body}), "commit 7")
    assert read is not None and read.coverage == COVERAGE and read.requires == ()
    after = following(entry(commit="d"), read)
    again = decode(encode(after), "commit 8")
    assert again == after and getattr(again, name) == Entry.model_fields[name].get_default(call_default_factory=True)


class Later(FrozenRecord):
    """An entry with what later kinds need: a field to be carried on and known, one to be known once, one to be passed over."""

    kind: Literal["land", "reset"] = "land"
    horizon: Annotated[dict[str, int] | None, CarriedOn(), Required("horizon")] = None
    redone: Annotated[str | None, Required("redo")] = None
    schemas: Annotated[tuple[str, ...], CarriedOn()] = ()
    source: str | None = None


def test_a_later_kind_of_field_is_one_line() -> None:
    before = Later(horizon={"orders": 4}, redone="hash", schemas=("f1",), source="abc")
    assert required_by(before) == {"horizon", "redo"} and required_by(Later(schemas=("f1",), source="abc")) == set()
    after = Later().model_copy(update=carried_on(before, Later(), is_reset=False))
    assert after == Later(horizon={"orders": 4}, schemas=("f1",))
    assert required_by(after) == {"horizon"}
    assert requirements_of(Later) == {"horizon", "redo"}
