"""Packed intervals come back as they were, are small, and what was forged is refused."""

from __future__ import annotations

import base64
import json
import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebound.errors import BadEntryError
from lakebound.ledger.entry import Entry, TopicOffsets, decode, encode
from lakebound.ledger.intervals import merge
from lakebound.ledger.packing import pack, unpack

intervals = st.lists(st.tuples(st.integers(0, 2**40), st.integers(1, 2**20)), min_size=17, max_size=60).map(
    lambda found: merge((start, start + length) for start, length in found)
)


@given(intervals)
def test_they_come_back_as_they_were(found: tuple[tuple[int, int], ...]) -> None:
    packed = pack(found)
    assert (unpack(packed) if isinstance(packed, str) else tuple(map(tuple, packed))) == found


def test_few_stay_readable() -> None:
    assert pack(((1, 2), (5, 9))) == [[1, 2], [5, 9]]


def test_ten_thousand_scattered_offsets_take_a_tenth_of_their_json() -> None:
    chosen = sorted(random.Random(1).sample(range(10**9, 10**9 + 10**6), 10_000))
    held = TopicOffsets(topic_id="id", partitions={0: merge((offset, offset + 1) for offset in chosen)})
    entry = Entry(kind="release", pipeline="p", epoch=1, commit="c", releases={"t": held}, released=10_000)
    text = encode(entry)
    plain = len(json.dumps(held.model_dump(mode="json"), separators=(",", ":")))
    assert len(text) < 25_000 < plain / 8
    assert decode(text, "here") == entry


@pytest.mark.parametrize(
    "text",
    [
        "not base64!",
        base64.b64encode(b"not deflated").decode(),
        base64.b64encode(zlib.compress(b"\x01\x01")[:-3]).decode(),
        base64.b64encode(zlib.compress(b"\x00" * (17 * 1024 * 1024))).decode(),
        base64.b64encode(zlib.compress(b"\x01")).decode(),
        base64.b64encode(zlib.compress(b"\x01\x80")).decode(),
        base64.b64encode(zlib.compress(b"\xff" * 12 + b"\x01\x01")).decode(),
        base64.b64encode(zlib.compress(b"\xff" * 9 + b"\x01\x01")).decode(),
    ],
)
def test_what_was_forged_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        unpack(text)
    body = {"kind": "release", "pipeline": "p", "epoch": 1, "commit": "c"}
    body["releases"] = {"t": {"topic_id": "id", "partitions": {"0": text}}}  # type: ignore[assignment]
    with pytest.raises(BadEntryError):
        decode(json.dumps({"lakebound": body}), "here")


@pytest.mark.parametrize("releases", [5, {"t": 5}, {"t": {"topic_id": "id", "partitions": 5}}, {"t": {"partitions": {}}}])
def test_another_shape_is_a_bad_entry(releases: object) -> None:
    body = {"kind": "release", "pipeline": "p", "epoch": 1, "commit": "c", "releases": releases}
    with pytest.raises(BadEntryError):
        decode(json.dumps({"lakebound": body}), "here")
