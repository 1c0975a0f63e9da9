"""What ``lakebound run`` shows of an application's log: a refusal is a sentence, its traceback stays in the log. Pure."""

from __future__ import annotations

import re

REFUSED = " is refused"
"""Ends the record of the log below which a refusal's traceback stands."""

_RECORD = re.compile(r"\d{2,4}[-/]\d\d[-/]\d\d \d\d:\d\d:\d\d")
_VERDICT = re.compile(r"(stopped|completed|failed|refused|superseded): ")


class ShownLog:
    """Takes a log as it is written, and gives what is shown of it."""

    def __init__(self, *, everything: bool) -> None:
        self._everything = everything
        self._rest = ""
        self._hides = False

    def take(self, text: str) -> str:
        """Return what is shown of more of the log; a line that has not ended yet is kept back."""
        if self._everything:
            return text
        *lines, self._rest = (self._rest + text).split("\n")
        return "".join(f"{line}\n" for line in lines if self._is_shown(line))

    def end(self) -> str:
        """Return what is shown of a last line that did not end."""
        rest, self._rest = self._rest, ""
        return rest if rest and self._is_shown(rest) else ""

    def _is_shown(self, line: str) -> bool:
        if _RECORD.match(line):
            self._hides = line.endswith(REFUSED)
        elif _VERDICT.match(line):
            self._hides = False
        return not self._hides
