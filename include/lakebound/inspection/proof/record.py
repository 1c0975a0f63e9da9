"""Keeps the last word of a proof, by which the objectives are judged."""

from __future__ import annotations

import time

from lakebound.control.folder import ControlFolder
from lakebound.control.summaries import ProofSummary, write_proof
from lakebound.inspection.proof.result import Proof


def record_proof(control: ControlFolder, proof: Proof) -> None:
    """Write down what a proof of the whole pipeline said; a folder that cannot be written keeps nobody from the answer."""
    counts = {"missing": proof.missing, "duplicated": proof.duplicated}
    said = ProofSummary(ok=proof.ok, sentence=proof.sentence, is_empty=proof.is_empty, at=time.time(), **counts)
    write_proof(control, said)
