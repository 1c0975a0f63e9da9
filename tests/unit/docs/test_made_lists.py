"""The lists in pages that are made from the code are as the code makes them."""

from __future__ import annotations

import pytest
from tests.support.made_lists import LISTS, made


@pytest.mark.parametrize("name", LISTS)
def test_a_list_is_as_the_code_makes_it(name: str) -> None:
    page, text = made(name)
    assert page.read_text(encoding="utf-8") == text, "run: python -m tests.support.made_lists"
