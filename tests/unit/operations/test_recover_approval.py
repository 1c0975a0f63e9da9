"""Who may approve a repair, and which plan an answer approves."""

from __future__ import annotations

import html
import re

import pytest
from markdown_it import MarkdownIt

from lakebound.errors import SettingError
from lakebound.operations.recovery.approval import REJECT, ApprovalRule, NotApprovedError, approved_hash, options_for
from lakebound.settings import self_approval_is_allowed

HASH = "0123456789ab"


def rule(asked_by: str | None = "ada", *approvers: str, alone: bool = False) -> ApprovalRule:
    return ApprovalRule("orders", asked_by, approvers, alone)


def test_the_answer_names_the_plan_that_it_approves() -> None:
    assert options_for(HASH) == ["Approve 0123456789ab", "Reject"]
    assert approved_hash(options_for(HASH)[:1]) == HASH


@pytest.mark.parametrize("chosen", [[REJECT], [], ["Approve"], ["Approve "], options_for(HASH), ["approve 0123456789ab"]])
def test_nothing_else_is_an_approval(chosen: list[str]) -> None:
    assert approved_hash(chosen) is None


@pytest.mark.parametrize("approvers", [(), ("ada", "bob")])
def test_a_colleague_may_approve_and_who_asked_may_not(approvers: tuple[str, ...]) -> None:
    assert rule("ada", *approvers).checked("bob") == "bob"
    with pytest.raises(NotApprovedError, match="ada asked for the repair and may not approve it"):
        rule("ada", *approvers).checked("ada")
    assert rule("ada", *approvers, alone=True).checked("ada") == "ada"


@pytest.mark.parametrize("alone", [True, False])
def test_only_those_who_are_named_may_approve(alone: bool) -> None:
    with pytest.raises(NotApprovedError, match=r"eve is not in `approvers` .*\(ada, bob\)"):
        rule("ada", "ada", "bob", alone=alone).checked("eve")


@pytest.mark.parametrize("alone", [True, False])
def test_an_approval_by_nobody_is_none(alone: bool) -> None:
    with pytest.raises(NotApprovedError, match="does not say who"):
        rule(alone=alone).checked(None)


def test_a_question_is_for_the_named_without_who_asked() -> None:
    assert rule("ada", "ada", "bob").eligible == ("bob",)
    assert rule("ada", "ada", "bob", alone=True).eligible == ("ada", "bob")
    assert rule("eve", "ada", "bob").eligible == ("ada", "bob")


def test_a_question_that_nobody_could_answer_is_not_asked() -> None:
    with pytest.raises(NotApprovedError, match="the only one in `approvers`"):
        rule("ada", "ada").check_can_be_asked()
    with pytest.raises(NotApprovedError, match="not known who asked"):
        rule(None).check_can_be_asked()
    for fine in (rule("ada", "ada", alone=True), rule(None, alone=True), rule("ada"), rule("ada", "bob")):
        fine.check_can_be_asked()


def test_the_page_says_who_may_approve() -> None:
    assert rule("ada", "ada", "bob").sentence() == "Asked by ada. May approve: bob, but not the user who asked."
    assert "every user who may answer in Airflow, but not the user who asked" in rule().sentence()
    assert "The user who asked may approve, too (LAKEBOUND_SELF_APPROVAL=allow)" in rule(alone=True).sentence()


def test_self_approval_is_refused_unless_the_operator_allows_it() -> None:
    assert not self_approval_is_allowed({})
    assert not self_approval_is_allowed({"LAKEBOUND_SELF_APPROVAL": "refuse"})
    assert self_approval_is_allowed({"LAKEBOUND_SELF_APPROVAL": "allow"})
    with pytest.raises(SettingError, match="'yes' is neither"):
        self_approval_is_allowed({"LAKEBOUND_SELF_APPROVAL": "yes"})


@pytest.mark.parametrize("name", ["[ada](https://evil.test)", "![](https://evil.test/x.png)", "<b>ada</b>", "**ada**"])
def test_a_name_is_text_on_the_page_of_a_repair(name: str) -> None:
    page = MarkdownIt("commonmark", {"html": True}).render(ApprovalRule("orders", name, (name, "grace")).sentence())
    assert not re.search("<(?!/?p>)", page)
    page = MarkdownIt("commonmark", {"html": True}).render(ApprovalRule("orders", "ada", (name,)).sentence())
    assert not re.search("<(?!/?p>)", page) and html.escape(name) in page
