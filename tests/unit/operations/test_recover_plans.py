"""Plans of recovery from facts alone: what is named, what is refused, and what the hash rests on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakebound.control.desired import Desired
from lakebound.control.lease import Lease
from lakebound.control.submission import Submission
from lakebound.inspection.doctor.diagnosis import Diagnosis, RuleFinding
from lakebound.ledger.entry import Offsets, TopicOffsets
from lakebound.ledger.lost import LostRange
from lakebound.ledger.topics import TopicFacts
from lakebound.operations.recovery.actions import PLANNERS, make_plan
from lakebound.operations.recovery.facts import BrokerFacts, Control, HeldTable, RecoveryFacts
from lakebound.operations.recovery.landing_rate import START_SECONDS
from lakebound.operations.recovery.plan import PlanChangedError, PlanRefusedError, RepairAction, RepairPlan, check_hash
from lakebound.operations.recovery.rebuild import Rebuilt
from lakebound.operations.recovery.suggestion import ACTION_OF_RUNBOOK, action_for

OLD, NEW = "topic-id-1", "topic-id-2"


def held(partitions: dict[int, tuple[int, int]], topic_id: str = OLD) -> Offsets:
    """Return one interval per partition of the topic ``orders``."""
    return {"orders": TopicOffsets(topic_id=topic_id, partitions={p: (interval,) for p, interval in partitions.items()})}


def kafka(earliest: dict[int, int], latest: dict[int, int], topic_id: str = OLD) -> BrokerFacts:
    """Return what the broker has of ``orders``."""
    return BrokerFacts({"orders": TopicFacts(topic_id, earliest, latest)})


def lease(app_id: str = "orders-1", *, released: bool = False) -> Lease:
    """Return a lease of epoch 3, last renewed at 1000."""
    return Lease(
        epoch=3,
        app_id=app_id,
        host="far-away",
        pid=7,
        pid_started_at=1.0,
        acquired_at=900.0,
        heartbeat_at=1000.0,
        ttl_seconds=30,
        released=released,
    )


DELTA = HeldTable("delta:orders", coverage=held({0: (0, 100), 1: (0, 50)}))
ICEBERG = HeldTable("iceberg:orders", coverage=held({0: (0, 80), 1: (0, 50)}))
BAD = HeldTable("delta:quarantine.orders", "quarantine", coverage=held({0: (0, 100)}))
HEALTHY = RecoveryFacts(
    "orders", (DELTA, ICEBERG, BAD), kafka({0: 0, 1: 0}, {0: 200, 1: 50}), Control(lease=lease(released=True), now=1012.0)
)
RESTORED = HeldTable(
    "delta:orders",
    refusal="table delta:orders was restored in version 9",
    rebuilt=Rebuilt(held({0: (0, 60)}), "entry", "4"),
)
NO_LEDGER = HeldTable(
    "delta:orders",
    refusal="table delta:orders has data but no ledger entry",
    rebuilt=Rebuilt(held({0: (5, 60)}), "scan", rowless=3),
)


def refusal(action: RepairAction, facts: RecoveryFacts) -> str:
    """Return why there is no plan."""
    with pytest.raises(PlanRefusedError) as found:
        make_plan(action, facts)
    return str(found.value)


def text(plan: RepairPlan) -> str:
    """Return the page that a person approves."""
    return plan.markdown()


def replace_words(plan: RepairPlan) -> RepairPlan:
    """Return the same plan in other words."""
    steps = tuple(step.model_copy(update={"what": f"in other words: {step.what}"}) for step in plan.steps)
    return plan.model_copy(update={"steps": steps, "summary": "in other words", "notes": ("another note",)})


@pytest.mark.parametrize("action", PLANNERS)
def test_a_healthy_pipeline_gives_every_action_nothing_to_do(action: RepairAction) -> None:
    assert "nothing to do" in refusal(action, HEALTHY)


class TestAcceptLoss:
    facts = replace(HEALTHY, kafka=kafka({0: 90, 1: 70}, {0: 200, 1: 90}))

    def test_each_table_gives_up_exactly_what_it_lacks(self) -> None:
        plan = make_plan("accept_loss", self.facts)
        skipped = {step.table: step.detail["range"]["orders"]["partitions"] for step in plan.steps if step.table}
        assert skipped == {"delta:orders": {"1": [[50, 70]]}, "iceberg:orders": {"0": [[80, 90]], "1": [[50, 70]]}}
        assert plan.loses == (
            LostRange(topic="orders", partition=0, start=80, end=90),
            LostRange(topic="orders", partition=1, start=50, end=70),
        )
        assert "offsets lost permanently: **30**" in text(plan)
        assert "orders partition 1: [50, 70)" in text(plan)
        assert plan.steps[-1].detail == {"want": "running"}

    def test_holes_and_partitions_that_were_never_seen_are_lost_up_to_the_earliest_offset(self) -> None:
        pieces = {"orders": TopicOffsets(topic_id=OLD, partitions={0: ((5, 20), (30, 40), (95, 100)), 1: ((70, 70),)})}
        facts = replace(
            HEALTHY, tables=(replace(DELTA, coverage=pieces),), kafka=kafka({0: 97, 1: 70, 2: 4}, {0: 200, 1: 90, 2: 9})
        )
        lost = [(lost.partition, lost.start, lost.end) for lost in make_plan("accept_loss", facts).loses]
        assert lost == [(0, 20, 30), (0, 40, 95), (2, 0, 4)]

    def test_the_hash_changes_with_what_is_lost_and_with_nothing_else(self) -> None:
        plan = make_plan("accept_loss", self.facts)
        later = replace(self.facts, kafka=kafka({0: 90, 1: 70}, {0: 999, 1: 999}))
        assert make_plan("accept_loss", later).hash == plan.hash
        started_again = replace(later, control=Control(lease=lease(), lease_is_live=True, now=2000.0))
        assert make_plan("accept_loss", started_again).hash == plan.hash
        more = make_plan("accept_loss", replace(self.facts, kafka=kafka({0: 90, 1: 71}, {0: 200, 1: 90})))
        with pytest.raises(PlanChangedError, match=plan.hash):
            check_hash(more, plan.hash)

    def test_it_is_refused_where_it_would_do_harm(self) -> None:
        assert "does not answer" in refusal("accept_loss", replace(HEALTHY, kafka=BrokerFacts(silence="Kafka does not answer")))
        assert "not on the broker: orders" in refusal("accept_loss", replace(HEALTHY, kafka=BrokerFacts({"orders": None})))
        recreated = replace(HEALTHY, kafka=kafka({0: 90, 1: 70}, {0: 200, 1: 90}, NEW))
        assert "new_incarnation" in refusal("accept_loss", recreated)
        assert "rebase" in refusal("accept_loss", replace(self.facts, tables=(RESTORED, ICEBERG, BAD)))


class TestNewIncarnation:
    facts = replace(
        HEALTHY,
        kafka=kafka({0: 2, 1: 0, 2: 0}, {0: 500, 1: 500, 2: 0}, NEW),
        control=replace(HEALTHY.control, last_seen_ends={"orders": {0: 130, 1: 50}}),
    )

    def test_the_new_topic_starts_at_its_beginning_and_the_old_rows_are_remembered(self) -> None:
        plan = make_plan("new_incarnation", self.facts)
        details = {step.table: step.detail for step in plan.steps if step.table}
        assert set(details) == {"delta:orders", "iceberg:orders", "delta:quarantine.orders"}
        delta = details["delta:orders"]
        coverage = TopicOffsets.model_validate(delta["coverage"]["orders"])
        assert coverage == TopicOffsets(topic_id=NEW, partitions={0: ((2, 2),), 1: ((0, 0),), 2: ((0, 0),)})
        assert [TopicOffsets.model_validate(one) for one in delta["former"]["orders"]] == [DELTA.coverage["orders"]]
        assert details["delta:quarantine.orders"]["coverage"] == {}, "it gets no marks"
        assert plan.loses == ()

    def test_it_says_what_of_the_old_topic_was_never_landed_as_far_as_is_known(self) -> None:
        page = text(make_plan("new_incarnation", self.facts))
        assert "delta:orders: landed offsets of the old topic orders: partition 0 up to 100, partition 1 up to 50;" in page
        assert "iceberg:orders: landed offsets of the old topic orders: partition 0 up to 80, partition 1 up to 50;" in page
        assert "also saw partition 0 [100, 130), before or after the topic was created again" in page

    def test_a_table_that_has_begun_anew_already_is_left_alone(self) -> None:
        begun = replace(DELTA, coverage=held({0: (2, 2)}, NEW))
        plan = make_plan("new_incarnation", replace(self.facts, tables=(begun, ICEBERG, replace(BAD, coverage={}))))
        assert [step.table for step in plan.steps if step.table] == ["iceberg:orders"]

    def test_topics_that_are_the_same_still_keep_their_coverage(self) -> None:
        other = {"payments": TopicOffsets(topic_id="p", partitions={0: ((0, 9),)})}
        both = replace(DELTA, coverage={**DELTA.coverage, **other})
        topics = {**self.facts.kafka.topics, "payments": TopicFacts("p", {0: 0}, {0: 9})}
        plan = make_plan("new_incarnation", replace(self.facts, tables=(both,), kafka=BrokerFacts(topics)))
        assert TopicOffsets.model_validate(plan.steps[0].detail["coverage"]["payments"]) == other["payments"]


class TestRebase:
    def test_the_entry_of_the_restored_version_is_taken_for_the_ledger(self) -> None:
        plan = make_plan("rebase", replace(HEALTHY, tables=(RESTORED, ICEBERG, BAD)))
        assert [step.table for step in plan.steps if step.table] == ["delta:orders"]
        coverage = TopicOffsets.model_validate(plan.steps[0].detail["coverage"]["orders"])
        assert coverage.partitions == {0: ((0, 60),), 1: ((0, 0),)}, "a mark where it has nothing"
        assert "from the entry of version 4" in plan.steps[0].what
        assert plan.replays_records == (80 - 60) + 50

    def test_rows_are_a_lower_bound_and_the_plan_says_so(self) -> None:
        page = text(make_plan("rebase", replace(HEALTHY, tables=(NO_LEDGER, ICEBERG, BAD))))
        assert "from a scan of its rows" in page
        assert "orders/0 [5, 60)" in page
        assert "filtered or quarantined records after its last row are read again" in page
        assert "3 offsets between its rows have no row" in page
        assert "`lakebound prove orders --deep`" in page

    def test_another_wording_of_the_same_refusal_leaves_the_approval_valid(self) -> None:
        facts = replace(HEALTHY, tables=(RESTORED, ICEBERG, BAD))
        plan = make_plan("rebase", facts)
        assert "delta:orders: table delta:orders was restored in version 9" in text(plan)
        reworded = replace(RESTORED, refusal="somebody restored table delta:orders")
        assert make_plan("rebase", replace(facts, tables=(reworded, ICEBERG, BAD))).hash == plan.hash
        assert replace_words(plan).hash == plan.hash

    @pytest.mark.parametrize(
        "changed",
        [
            replace(RESTORED, runbook="table-restored"),
            replace(RESTORED, rebuilt=Rebuilt(held({0: (0, 60)}), "entry", "5")),
            replace(RESTORED, rebuilt=Rebuilt(held({0: (0, 61)}), "entry", "4")),
            replace(RESTORED, rebuilt=Rebuilt(held({0: (0, 60)}), "entry", "4", released=1)),
        ],
        ids=["reason", "version", "coverage", "released"],
    )
    def test_another_fact_makes_the_approval_void(self, changed: HeldTable) -> None:
        plan = make_plan("rebase", replace(HEALTHY, tables=(RESTORED, ICEBERG, BAD)))
        assert make_plan("rebase", replace(HEALTHY, tables=(changed, ICEBERG, BAD))).hash != plan.hash

    def test_what_cannot_be_worked_out_is_refused(self) -> None:
        unreadable = replace(RESTORED, rebuilt=None, refusal="the ledger entry in x cannot be read")
        assert "cannot be determined: the ledger entry in x" in refusal("rebase", replace(HEALTHY, tables=(unreadable,)))

    def test_a_quarantine_is_rebased_without_marks(self) -> None:
        broken = replace(BAD, coverage={}, refusal="gone", rebuilt=Rebuilt(held({0: (0, 9)}), "statistics"))
        plan = make_plan("rebase", replace(HEALTHY, tables=(DELTA, ICEBERG, broken)))
        assert TopicOffsets.model_validate(plan.steps[0].detail["coverage"]["orders"]).partitions == {0: ((0, 9),)}


class TestDropZombie:
    facts = replace(HEALTHY, control=Control(lease=lease(), lease_is_live=True, now=1012.0))

    def test_every_table_is_fenced_and_the_holder_is_named(self) -> None:
        plan = make_plan("drop_zombie", self.facts)
        assert [step.table for step in plan.steps if step.table] == [table.table for table in HEALTHY.tables]
        assert "orders-1 on far-away (process 7) has held the lease since 1970-01-01 00:15:00 UTC" in plan.summary
        assert "its last heartbeat was 12 s ago, the lease is still valid" in plan.summary

    def test_the_hash_is_that_holders_whatever_the_time(self) -> None:
        plan = make_plan("drop_zombie", self.facts)
        later = replace(self.facts.control, now=5000.0, lease_is_live=False)
        assert make_plan("drop_zombie", replace(self.facts, control=later)).hash == plan.hash
        other = replace(self.facts.control, lease=lease("orders-2"))
        assert make_plan("drop_zombie", replace(self.facts, control=other)).hash != plan.hash

    def test_tables_that_are_not_there_are_not_fenced(self) -> None:
        plan = make_plan("drop_zombie", replace(self.facts, tables=(DELTA, replace(BAD, exists=False))))
        assert [step.table for step in plan.steps if step.table] == ["delta:orders"]


class TestResume:
    hold = replace(HEALTHY, control=replace(HEALTHY.control, desired=Desired(state="held", reason="for the audit")))

    def test_a_hold_is_ended(self) -> None:
        (step,) = make_plan("resume", self.hold).steps
        assert (step.detail, "held (for the audit)" in step.what) == ({"want": "running"}, True)

    def test_a_stalled_application_is_ended_and_stays_wanted(self) -> None:
        app = Submission(app_id="orders-1", host="here", submitted_at=0.0, log=None)
        plan = make_plan("resume", replace(HEALTHY, control=Control(app=app, stall="silent")))
        assert [step.what for step in plan.steps] == ["end the application orders-1, which is stalled"]
        other = replace(HEALTHY, control=Control(app=app.model_copy(update={"app_id": "orders-2"}), stall="silent"))
        assert make_plan("resume", other).hash != plan.hash

    def test_a_crash_loop_is_forgotten(self) -> None:
        plan = make_plan("resume", replace(HEALTHY, control=Control(barren_ends=3)))
        assert [step.detail for step in plan.steps] == [{"want": "running"}]
        assert "lakebound start orders, which also unpauses the DAG ingest__orders" in text(plan)

    def test_it_is_refused_where_the_application_would_refuse_to_start(self) -> None:
        gone = replace(self.hold, kafka=kafka({0: 90, 1: 70}, {0: 200, 1: 90}))
        assert "Kafka's earliest offset is" in refusal("resume", gone)
        assert "was restored in version" in refusal("resume", replace(self.hold, tables=(RESTORED,)))

    def test_a_silent_broker_keeps_nobody_from_ending_a_hold(self) -> None:
        silent = replace(self.hold, kafka=BrokerFacts(silence="no answer"))
        assert "Kafka was not asked: no answer" in text(make_plan("resume", silent))


@pytest.mark.parametrize("action", ["accept_loss", "new_incarnation", "rebase", "drop_zombie"])
def test_a_pipeline_that_was_stopped_on_purpose_stays_stopped(action: RepairAction) -> None:
    damaged = {
        "accept_loss": TestAcceptLoss.facts,
        "new_incarnation": TestNewIncarnation.facts,
        "rebase": replace(HEALTHY, tables=(RESTORED,)),
        "drop_zombie": TestDropZombie.facts,
    }[action]
    stopped = replace(damaged, control=replace(damaged.control, desired=Desired(state="stopped")))
    assert make_plan(action, stopped).steps[-1].detail == {"want": "stopped"}
    assert make_plan(action, damaged).steps[-1].detail == {"want": "running"}


def test_the_decisive_finding_names_the_action() -> None:
    def diagnosis(runbook: str | None) -> Diagnosis:
        finding = RuleFinding(rule="some-rule", verdict="needs_approval", sentence="Something is wrong.", runbook=runbook)
        return Diagnosis(subject="orders", findings=(finding,))

    for runbook, action in ACTION_OF_RUNBOOK.items():
        assert action_for(diagnosis(runbook)) == action
    with pytest.raises(PlanRefusedError, match=r"Something is wrong\.; see the runbook offsets-beyond-end"):
        action_for(diagnosis("offsets-beyond-end"))
    stopped = RuleFinding(rule="not-wanted", verdict="healthy", sentence="It is held.")
    assert action_for(Diagnosis(subject="orders", findings=(stopped,))) == "resume"
    with pytest.raises(PlanRefusedError, match="nothing wrong"):
        action_for(Diagnosis(subject="orders"))


class TestEstimate:
    """How long it takes until the stream has caught up again."""

    HELD_BACK = replace(HEALTHY, control=replace(HEALTHY.control, desired=Desired(state="held")))

    def test_it_counts_from_the_table_that_is_furthest_behind(self) -> None:
        plan = make_plan("resume", replace(self.HELD_BACK, records_per_second=10.0))
        assert plan.estimate_seconds == START_SECONDS + (200 - 80) / 10
        assert "caught up again after about 32 s" in text(plan)

    def test_a_recreated_topic_is_read_from_its_beginning(self) -> None:
        recreated = replace(HEALTHY, kafka=kafka({0: 5, 1: 0}, {0: 25, 1: 10}, NEW), records_per_second=10.0)
        assert make_plan("new_incarnation", recreated).estimate_seconds == START_SECONDS + (20 + 10) / 10

    def test_a_table_that_is_rebased_counts_with_what_it_does_hold(self) -> None:
        restored = replace(HEALTHY, tables=(RESTORED, ICEBERG, BAD), records_per_second=10.0)
        assert make_plan("rebase", restored).estimate_seconds == START_SECONDS + (200 - 60 + 50) / 10

    def test_without_a_rate_there_is_none_and_it_is_no_part_of_what_is_approved(self) -> None:
        plan = make_plan("resume", self.HELD_BACK)
        assert plan.estimate_seconds is None
        assert plan.hash == make_plan("resume", replace(self.HELD_BACK, records_per_second=10.0)).hash
