"""The proof of a landing: facts in, verdict out. Pure; ``lakebound.prove`` collects the facts."""

from __future__ import annotations

from lakebound.proof.facts import TableFacts
from lakebound.proof.judgement import judge
from lakebound.proof.result import Found, Proof, TableProof

__all__ = ["Found", "Proof", "TableFacts", "TableProof", "judge"]
