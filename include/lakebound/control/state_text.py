"""Texts of files that anybody may have written: JSON of any depth, and characters that no answer can hold. Pure."""

from __future__ import annotations

import json
from typing import Any


def parsed_json(text: str | bytes) -> Any:
    """Return what a text of JSON holds.

    Raises:
        ValueError: It is not JSON, or is nested too deeply to be of Lakebound.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def clean_text(text: str) -> str:
    """Return a text that UTF-8 can hold: half a pair of UTF-16 becomes ``?``, as does a byte of a file's name that is none."""
    return text.encode(errors="replace").decode()


def cut_text(text: str, most: int) -> str:
    """Return the beginning of a text, with an ellipsis where more follows."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
