"""The packages of ``requirements.lock`` as a script's requirements, the form in which ``uv audit`` takes exact versions.

``make audit`` writes it to a file. uv audits a project by a lock of its own form, or a script by what its head asks for
(https://packaging.python.org/en/latest/specifications/inline-script-metadata/): here each locked version, and nothing else.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*(?:\[[^]]*\])?==[^ ;\\]+)(?: *; *([^\\]+?))? *\\?$", re.MULTILINE)
_PYTHON = ">=3.11,<3.14"


def as_script(lock: str) -> str:
    """Return a script that needs each package of a lock, in the locked version and where its marker says. Pure."""
    needed = [f"{pin}; {marker}" if marker else pin for pin, marker in _PIN.findall(lock)]
    lines = ["/// script", f'requires-python = "{_PYTHON}"', "dependencies = [", *(f'  "{one}",' for one in needed), "]", "///"]
    return "".join(f"# {line}\n" for line in lines)


if __name__ == "__main__":
    print(as_script(Path(sys.argv[1]).read_text(encoding="utf-8")), end="")
