"""Answers requests: who asks, may they, which fault hits them, and what they get."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from tests.support.s3.access import AccessKey, AccessKeys
from tests.support.s3.answer import Answer, refusal
from tests.support.s3.aws_chunked import decode
from tests.support.s3.call import Call
from tests.support.s3.faults import Fault, Faults
from tests.support.s3.objects import ObjectStore
from tests.support.s3.operations import do
from tests.support.s3.policy import needed_rights
from tests.support.s3.request import Request, request_checksums
from tests.support.s3.request_log import RequestLog
from tests.support.s3.s3_error import S3Error, access_denied
from tests.support.s3.signature import Signer, verify


@dataclass(frozen=True)
class Outcome:
    """What becomes of a request: an answer, unless the fault is of those that send none."""

    answer: Answer
    fault: Fault | None

    @property
    def whole(self) -> bool:
        """Say whether the answer is sent whole."""
        return self.fault is None or self.fault.kind == "status"


class Service:
    """The server's state, without its sockets."""

    def __init__(self, keys: list[AccessKey], folder: Path | None = None) -> None:
        self.store = ObjectStore(folder)
        self.keys = AccessKeys(keys)
        self.faults = Faults()
        self.log = RequestLog()

    def outcome(self, call: Call, began: float) -> Outcome:
        """Let a request take effect, or not, and log it."""
        access_key_id = claimed_key_id(call)
        plan = self.faults.plan(call, access_key_id)
        time.sleep(plan.delay_seconds / 2)
        outcome = self._hit(call, plan.fault)
        time.sleep(plan.delay_seconds / 2)
        self._log(call, access_key_id, began, outcome)
        return outcome

    def turned_away(self, call: Call, began: float) -> Outcome:
        """Log a request of a time when nothing answers; it has no effect."""
        outcome = Outcome(Answer(), Fault("silence"))
        self._log(call, claimed_key_id(call), began, outcome)
        return outcome

    def _hit(self, call: Call, fault: Fault | None) -> Outcome:
        if fault is None or fault.kind == "half body":
            answer = self._answer(call)
            halved = fault if answer.status in (200, 206) and call.method == "GET" else None
            return Outcome(answer, halved)
        if fault.after_effect:
            self._answer(call)
        return Outcome(refusal(S3Error(fault.status, fault.code), call.path), fault)

    def _answer(self, call: Call) -> Answer:
        try:
            signer = verify(call, self.keys, time.time())
            if not all(signer.access_key.may(action, resource) for action, resource in needed_rights(call)):
                raise access_denied()
            return do(self.store, _request(call, signer))
        except S3Error as error:
            return refusal(error, call.path)

    def _log(self, call: Call, access_key_id: str, began: float, outcome: Outcome) -> None:
        half = 2 if outcome.fault is not None and outcome.fault.kind == "half body" else 1
        sends = outcome.whole or half == 2
        self.log.add(
            method=call.method,
            operation=call.operation,
            bucket=call.bucket,
            key=call.key or call.query.get("prefix", ""),
            access_key_id=access_key_id,
            status=outcome.answer.status if sends else None,
            fault=None if outcome.fault is None else outcome.fault.kind,
            received_bytes=len(call.body),
            sent_bytes=len(outcome.answer.body) // half if sends and call.method != "HEAD" else 0,
            began=began,
            ended=time.monotonic(),
        )


def claimed_key_id(call: Call) -> str:
    """Return the id of the key that a request says it is signed with; nothing if it does not say."""
    return (call.header("authorization") or "").partition("Credential=")[2].partition("/")[0]


def _request(call: Call, signer: Signer) -> Request:
    payload = call.header("x-amz-content-sha256") or ""
    data, trailers = call.body, dict[str, str]()
    if payload.startswith("STREAMING-"):
        data, trailers = decode(call.body, signer if payload.startswith("STREAMING-AWS4-HMAC-SHA256-PAYLOAD") else None)
        said = call.header("x-amz-decoded-content-length")
        if said is not None and int(said) != len(data):
            raise S3Error(400, "IncompleteBody", "The body has not the length that x-amz-decoded-content-length says")
    return Request(call, signer.access_key, data, request_checksums(call, trailers))
