"""Passwords of any characters, as Java's StreamTokenizer reads them."""

from __future__ import annotations

import pytest

from lakebound.landing.jaas import jaas_quoted


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("plain", '"plain"'),
        ("pässwörd€𝄞", '"pässwörd€𝄞"'),
        ('a"b\\c', '"a\\"b\\\\c"'),
        ("one\ntwo\t3", '"one\\012two\\0113"'),
        ("'; $x", '"\'; $x"'),
    ],
)
def test_quoting(text: str, quoted: str) -> None:
    assert jaas_quoted(text) == quoted
