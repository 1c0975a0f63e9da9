"""The packages of ``requirements.lock`` as a script's requirements, the form in which ``uv audit`` takes exact versions.

``make audit`` (``audit.py``) writes it to a file. uv audits a project by a lock of its own form, or a script by what its head
asks for (https://packaging.python.org/en/latest/specifications/inline-script-metadata/): here each locked version, and nothing
else.
"""

from __future__ import annotations

import re

_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*(?:\[[^]]*\])?==[^ ;\\]+)(?: *; *([^\\]+?))? *\\?$", re.MULTILINE)
_PYTHON = ">=3.11,<3.14"


def as_script(lock: str) -> str:
    """Return a script that needs each package of a lock, in the locked version and where its marker says. Pure."""
    needed = [f"{pin}; {marker}" if marker else pin for pin, marker in _PIN.findall(lock)]
    lines = ["/// script", f'requires-python = "{_PYTHON}"', "dependencies = [", *(f'  "{one}",' for one in needed), "]", "///"]
    return "".join(f"# {line}\n" for line in lines)


def locked_versions(lock: str) -> list[tuple[str, str]]:
    """Return the packages of a lock with their versions, whatever their markers say. Pure."""
    names = [pin.split("==") for pin, _ in _PIN.findall(lock)]
    return [(name.partition("[")[0], version) for name, version in names]
