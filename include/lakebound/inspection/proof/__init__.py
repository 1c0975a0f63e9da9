"""The proof of a landing: facts in, verdict out. Pure, but for ``collect``, which reads the facts.

Other rooms import ``collect``, ``entries``, ``history``, ``offset_arrays``, ``record`` and ``result``.
"""

from __future__ import annotations

from lakebound.inspection.proof.facts import TableAsFound
from lakebound.inspection.proof.judgement import judge
from lakebound.inspection.proof.result import Found, Proof, TableProof

__all__ = ["Found", "Proof", "TableAsFound", "TableProof", "judge"]
