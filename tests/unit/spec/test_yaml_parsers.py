"""YAML is read by libyaml, and by Python's parser where that refuses: what both read is the same."""

from __future__ import annotations

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.streams.long_form import examples

from lakebound.spec import yaml_source

PIECES = (
    *"abc01-:,?|>&*%@`#'\"[]{}~=<.\\/ \t\n",
    *("a: ", "- ", "? ", "\n  ", "\n    ", "'x'", '"y\\n"', "|\n", ">-\n  ", "{a: 1}", "[1, 2]"),
    *("&n ", "*n", "<<: ", "---\n", "...\n", "null", "true", "yes", "on", "1_000", "0x1F", "0o7", "017", "1e3", "1.5", ".inf"),
    *("2026-11-30", "12:30:45", "é", "名", "\x85", "\u2028"),
)


def told(loader: type[yaml_source._Loader] | type[yaml_source._FastLoader], text: str) -> object:
    try:
        source = yaml_source._Reader(loader(text)).read()
    except yaml.YAMLError as exc:
        return type(exc)
    return repr(source.root), source.lines, source.mistakes


@settings(max_examples=examples(4000))
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
@example("a: 1\nb:\n  - c: >-\n      text: with a colon\n  - d\n")
@example("a: &n {b: 1}\nc:\n  <<: *n\n  d: *n\n")
def test_what_both_parsers_read_is_the_same(text: str) -> None:
    assert yaml.__with_libyaml__, "this Python's PyYAML has no libyaml"
    fast, slow = told(yaml_source._FastLoader, text), told(yaml_source._Loader, text)
    assert isinstance(fast, type) or isinstance(slow, type) or fast == slow
