"""Answers that can hold whatever was read: what is no character, or no number, does not make an error of the page."""

from __future__ import annotations

import json
import math
from typing import Any

from fastapi.responses import HTMLResponse, JSONResponse


class Fragment(HTMLResponse):
    """A piece of HTML."""

    def render(self, content: Any) -> bytes:
        """Return the bytes; half a character, such as of a file's name in other bytes, becomes ``?``."""
        return str(content).encode(errors="replace")


class Data(JSONResponse):
    """JSON; a number that is none is null."""

    def render(self, content: Any) -> bytes:
        """Return the bytes, in ASCII: half a character is escaped like others."""
        try:
            text = json.dumps(content, allow_nan=False, separators=(",", ":"))
        except ValueError:
            text = json.dumps(_finite(content), allow_nan=False, separators=(",", ":"))
        return text.encode()


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
