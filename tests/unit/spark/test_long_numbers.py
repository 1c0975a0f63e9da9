"""A number that Jackson refuses by its length is found wherever it lies in a record, and nothing else is taken for one."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from lakebound_spark.batch.direct_decode import _has_long_number

LONG = re.compile(rb"[0-9.eE+-]{900}")
PARTS = st.tuples(st.sampled_from([b"7", b"-1.5e", b"x", b"{", b'","']), st.integers(0, 1000))


@given(parts=st.lists(PARTS, max_size=6))
@example(parts=[(b"7", 900)])
@example(parts=[(b"x", 1), (b"7", 900)])
@example(parts=[(b"7", 899), (b"x", 1), (b"7", 899)])
@example(parts=[(b"x", 899), (b"7", 900), (b"x", 5)])
@example(parts=[(b"x", 450), (b"7", 900)])
def test_it_is_found_as_a_search_finds_it(parts: list[tuple[bytes, int]]) -> None:
    value = b"".join(part * times for part, times in parts)
    assert _has_long_number(value) is (LONG.search(value) is not None)
