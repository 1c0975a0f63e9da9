"""The benchmark's modules are scripts beside each other, as Python finds them when one is started."""

from __future__ import annotations

import sys
from pathlib import Path

BENCH = str(Path(__file__).parents[3] / "bench")
if BENCH not in sys.path:
    sys.path.append(BENCH)
