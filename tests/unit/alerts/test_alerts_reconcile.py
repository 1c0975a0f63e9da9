"""From findings to messages: what is said, when, and that nothing is said twice or lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.streams.long_form import examples

from lakebound.alerts.concerns import is_symptom
from lakebound.alerts.model import Memory, Message, MessageKind, Policy, Reminders
from lakebound.alerts.reconcile import reconcile
from lakebound.control.findings import Finding, Findings, Severity

POLICY = Policy()
MINUTE = 60.0


def finding(cause: str, severity: Severity = Severity.WARNING, runbook: str | None = None, what: str | None = None) -> Finding:
    return Finding(cause=cause, severity=severity, what=what or f"{cause} is wrong", since=0.0, runbook=runbook)


def look(at: float, *found: Finding, source: str = "doctor", pipeline: str = "orders") -> Findings:
    return Findings(source=source, pipeline=pipeline, at=at, findings=found)


class Rounds:
    """Rounds one after the other, each with what the sources say then."""

    def __init__(self, policy: Policy = POLICY) -> None:
        self.policy, self.memory, self.said = policy, Memory(), list[Message]()
        self.used: dict[str, dict[str, tuple[str, ...]]] = {}

    def at(self, now: float, *looks: Findings, retired: Iterable[str] = ()) -> list[str]:
        """Run a round, and return what it says: ``kind pipeline cause cause``."""
        self.memory, messages = reconcile(self.memory, looks, self.policy, now, used=self.used, retired=frozenset(retired))
        self.said += messages
        return [" ".join([one.kind.value, one.pipeline, *(told.cause for told in one.alerts)]) for one in messages]


def test_an_alert_is_opened_once_after_a_while_said_again_after_a_set_time_and_resolved_once() -> None:
    rounds, torn = Rounds(), finding("torn", Severity.CRITICAL)
    assert rounds.at(0, look(0, torn)) == [], "it may be gone in a moment"
    assert rounds.at(60, look(60, torn)) == ["opened orders torn"]
    hours = [rounds.at(60 + minute * MINUTE, look(60 + minute * MINUTE, torn)) for minute in range(1, 8 * 60 + 1)]
    assert [(minute + 1, said) for minute, said in enumerate(hours) if said] == [
        (240, ["reminder orders torn"]),
        (480, ["reminder orders torn"]),
    ]
    end = 9 * 3600.0
    assert rounds.at(end, look(end)) == []
    assert rounds.at(end + 120, look(end + 120)) == ["resolved orders torn"]
    assert rounds.at(end + 240, look(end + 240)) == []
    assert len({message.id for message in rounds.said}) == len(rounds.said) == 4
    assert len({message.alerts[0].id for message in rounds.said}) == 1, "one alert, by one name"


def test_what_is_in_no_hurry_is_said_again_once_a_week() -> None:
    rounds, dropped, hour = Rounds(), finding("unknown-fields"), 3600.0
    for now in (0, 60):
        rounds.at(now, look(now, dropped, source="unknown_fields"))
    hours = [rounds.at(60 + n * hour, look(60 + n * hour, dropped, source="unknown_fields")) for n in range(1, 15 * 24)]
    assert [n + 1 for n, said in enumerate(hours) if said] == [7 * 24, 14 * 24]


def test_alerts_of_a_pipeline_that_open_together_are_one_message_and_the_worst_comes_first() -> None:
    rounds = Rounds()
    findings = [finding("small"), finding("large", Severity.CRITICAL)]
    other = look(0, finding("else"), pipeline="readings")
    rounds.at(0, look(0, *findings), other)
    assert rounds.at(60, look(60, *findings), other) == ["opened orders large small", "opened readings else"]


def test_a_source_that_has_not_looked_resolves_nothing() -> None:
    rounds = Rounds()
    for now in (0, 60):
        rounds.at(now, look(now, finding("torn")))
    assert rounds.at(500) == [], "its file is gone"
    for now in (1200, 1500, 4000):
        assert rounds.at(now, look(100)) == [], "its last look is long ago"
    assert rounds.memory.open
    rounds.at(4060, look(4060))
    assert rounds.at(4180, look(4180)) == ["resolved orders torn"]


def test_a_source_that_looks_at_a_start_alone_resolves_what_it_named_however_long_ago_it_looked() -> None:
    rounds = Rounds()
    for now in (0, 60):
        rounds.at(now, look(now, finding("column note"), source="schema"))
    assert rounds.at(4000, look(100, source="schema")) == [], "nobody looked at the looks meanwhile"
    assert rounds.at(4120, look(100, source="schema")) == ["resolved orders column note"]


def test_what_flickers_is_not_told_and_what_comes_back_costs_ever_fewer_messages() -> None:
    rounds, lag = Rounds(), finding("torn")
    for minute in range(0, 20, 2):
        rounds.at(minute * MINUTE, look(minute * MINUTE, lag))
        rounds.at((minute + 1) * MINUTE, look((minute + 1) * MINUTE))
    assert rounds.said == []
    for minute in range(20, 20 + 24 * 60):
        now, is_there = minute * MINUTE, (minute // 5) % 2 == 0
        rounds.at(now, look(now, *[lag] * is_there))
    assert len(rounds.said) <= 8, "a day of five minutes on, five minutes off"


def test_a_rise_is_said_once_and_a_fall_is_not_said() -> None:
    rounds = Rounds()
    severities = [Severity.WARNING] * 2 + [Severity.CRITICAL] * 2 + [Severity.WARNING] * 2 + [Severity.CRITICAL] * 2
    said = [
        line
        for minute, severity in enumerate(severities)
        for line in rounds.at(minute * MINUTE, look(minute * MINUTE, finding("torn", severity)))
    ]
    assert said == ["opened orders torn", "worsened orders torn"]
    assert rounds.said[-1].alerts[0].severity is Severity.CRITICAL


def test_two_sources_that_mean_the_same_are_one_alert_that_ends_with_the_last_of_them() -> None:
    rounds = Rounds()
    stalled = finding("stalled", Severity.CRITICAL, "stall", "seen by the stream's task")
    same = finding("stalled", Severity.WARNING, "stall", "seen by the doctor")
    assert rounds.at(0, look(0, same), look(0, stalled, source="stream")) == ["opened orders stalled"], "at once"
    assert rounds.said[0].alerts[0].what == "seen by the stream's task"
    assert rounds.at(60, look(60, same), look(60, source="stream")) == []
    assert rounds.at(300, look(300, same), look(300, source="stream")) == []
    rounds.at(360, look(360), look(360, source="stream"))
    assert rounds.at(480, look(480), look(480, source="stream")) == ["resolved orders stalled"]


def test_what_follows_from_an_open_alert_is_not_told_but_named_in_it_and_told_when_it_stays() -> None:
    rounds = Rounds()
    outage = finding("broker-unavailable", Severity.CRITICAL, "broker-unavailable")
    lag = finding("lag", runbook="lag", what="far behind")
    for minute in range(30):
        rounds.at(minute * MINUTE, look(minute * MINUTE, outage, lag))
    assert [(one.kind, one.alerts[0].also) for one in rounds.said] == [
        (MessageKind.OPENED, ("far behind",)),
        (MessageKind.WORSENED, ("far behind",)),
    ]
    said = {minute: said for minute in range(30, 60) if (said := rounds.at(minute * MINUTE, look(minute * MINUTE, lag)))}
    assert said == {32: ["resolved orders broker-unavailable"], 47: ["opened orders lag"]}, "after its grace"


def test_a_crash_loop_that_an_outage_left_is_told_as_soon_as_the_outage_is_over() -> None:
    rounds = Rounds()
    outage = finding("broker-unavailable", Severity.CRITICAL, "broker-unavailable")
    loop = look(0, finding("crash_loop", Severity.CRITICAL, "crash-loop"), source="stream")
    said = [
        (minute, line)
        for minute in range(10)
        for line in rounds.at(minute * MINUTE, look(minute * MINUTE, *[outage] * (minute < 5)), loop)
    ]
    assert said == [
        (1, "opened orders broker-unavailable"),
        (7, "resolved orders broker-unavailable"),
        (8, "opened orders crash_loop"),
    ]


UNCLEAN = finding("20260101T000000-abc", runbook="application-dead", what="unclean_end: app-1 ended")


def test_an_incident_is_told_at_once_however_seldom_rounds_are() -> None:
    rounds = Rounds()
    assert rounds.at(0, look(0, UNCLEAN, source="incidents")) == [f"opened orders {UNCLEAN.cause}"]
    rounds.at(3600, look(3600, source="incidents"))
    assert rounds.at(3720, look(3720, source="incidents")) == [f"resolved orders {UNCLEAN.cause}"]


def test_the_incident_of_an_end_that_the_stream_has_told_is_not_told_again() -> None:
    for page, severity in (("application-dead", Severity.WARNING), ("stall", Severity.CRITICAL)):
        rounds, seen = Rounds(), finding("event", severity, page)
        said = [
            line
            for minute in range(40)
            for line in rounds.at(
                minute * MINUTE,
                look(minute * MINUTE, *[seen] * (minute < 3), source="stream"),
                look(minute * MINUTE, *[UNCLEAN] * (2 <= minute < 5), source="incidents"),
            )
        ]
        assert [line.split()[0] for line in said] == ["opened", "resolved"], page


def test_every_message_of_an_alert_is_routed_by_who_told_it_first_and_shows_who_names_it_now() -> None:
    rounds = Rounds()
    seen = finding("failed", Severity.WARNING, "application-dead")
    judged = finding("application-dead", Severity.CRITICAL, "application-dead")
    rounds.at(0, look(0, seen, source="stream"), look(0))
    rounds.at(60, look(60, source="stream"), look(60, judged))
    for now in (120, 240):
        rounds.at(now, look(now, source="stream"), look(now))
    assert [(one.kind, one.alerts[0].source, one.alerts[0].told_by) for one in rounds.said] == [
        (MessageKind.OPENED, "stream", "stream"),
        (MessageKind.WORSENED, "doctor", "stream"),
        (MessageKind.RESOLVED, "doctor", "stream"),
    ]


def test_the_causes_of_other_sources_and_other_pipelines_are_not_mixed_up() -> None:
    rounds = Rounds()
    looks = [
        [
            look(now, finding("x", runbook="page"), source="objectives"),
            look(now, finding("x", runbook="page"), source="maintenance"),
            look(now, finding("lag", runbook="lag"), pipeline="readings"),
            look(now, finding("broker-unavailable", Severity.CRITICAL, "broker-unavailable")),
        ]
        for now in (0.0, 60.0, 180.0)
    ]
    said = [rounds.at(one[0].at, *one) for one in looks]
    assert said == [[], ["opened orders broker-unavailable x x"], ["opened readings lag"]]


def test_a_flood_of_bad_records_is_one_alert_whoever_sees_it_and_hides_no_lag() -> None:
    rounds, runbook = Rounds(), "quarantine-flood"
    rate = finding("quarantine-rate", runbook=runbook)
    for now in (0.0, 60.0, 240.0):
        said = rounds.at(
            now,
            look(now, rate, finding("lag", runbook="lag"), source="objectives"),
            look(now, finding(runbook, runbook=runbook)),
        )
    assert said == ["opened orders lag"]
    assert [message.alerts[0].cause for message in rounds.said] == [runbook, "lag"]
    held = rate.model_copy(update={"severity": Severity.CRITICAL})
    ended = finding("refused", Severity.CRITICAL, runbook)
    looks = look(300, held, source="objectives"), look(300), look(300, ended, source="stream")
    assert rounds.at(300, *looks) == ["worsened orders refused"], "one alert, told by whoever knows the worst"
    assert rounds.at(420, look(420, source="objectives"), look(420), look(420, source="stream")) == ["resolved orders lag"]
    assert rounds.at(600, look(600, source="objectives"), look(600), look(600, source="stream")) == ["resolved orders refused"]


def test_a_pipeline_that_is_no_more_ends_its_alerts() -> None:
    rounds = Rounds()
    for now in (0, 60):
        rounds.at(now, look(now, finding("torn")))
    assert rounds.at(120, look(60, finding("torn")), retired=["orders"]) == ["resolved orders torn"]
    assert rounds.at(180, look(60, finding("torn")), retired=["orders"]) == []


CAUSES = {
    "broker-unavailable": ("doctor", finding("broker-unavailable", Severity.CRITICAL, "broker-unavailable")),
    "stalled": ("stream", finding("stalled", Severity.CRITICAL, "stall")),
    "lag": ("doctor", finding("lag", runbook="lag")),
    "own-lag": ("objectives", finding("lag", runbook="lag")),
    "freshness": ("objectives", finding("freshness", runbook="freshness")),
    "step": ("maintenance", finding("step")),
    "note": ("maintenance", finding("note", Severity.INFO)),
}
PIPELINES = ("orders", "readings")
Step = tuple[float, dict[str, frozenset[str]], frozenset[str]]
STEPS = st.lists(
    st.tuples(
        st.sampled_from([1.0, 30.0, 60.0, 61.0, 119.0, 300.0, 1000.0, 20_000.0]),
        st.fixed_dictionaries({name: st.frozensets(st.sampled_from(sorted(CAUSES)), max_size=4) for name in PIPELINES}),
        # Sources that do not look this time.
        st.frozensets(st.sampled_from(sorted({source for source, _ in CAUSES.values()})), max_size=1),
    ),
    max_size=40,
)


class World:
    """Sources that write what they find, and rounds after each step."""

    def __init__(self, *, shares: bool = False) -> None:
        self.now, self.rounds, self.files = 0.0, Rounds(), dict[tuple[str, str], Findings]()
        if shares:
            self.rounds.used = {name: {"broker-unavailable": ("Kafka at kafka:9092",)} for name in PIPELINES}

    def step(self, seconds: float, wrong: dict[str, frozenset[str]], idle: frozenset[str] = frozenset()) -> None:
        self.now += seconds
        for pipeline, names in wrong.items():
            for source in {source for source, _ in CAUSES.values()} - idle:
                found = [CAUSES[name][1] for name in sorted(names) if CAUSES[name][0] == source]
                self.files[pipeline, source] = look(self.now, *found, source=source, pipeline=pipeline)
        self.rounds.at(self.now, *self.files.values())


@settings(max_examples=examples(200))
@given(STEPS, st.booleans())
def test_nothing_is_said_twice_nothing_is_lost_and_everything_ends(steps: list[Step], shares: bool) -> None:
    world = World(shares=shares)
    for seconds, wrong, idle in steps:
        world.step(seconds, wrong, idle)
    ids = [message.id for message in world.rounds.said]
    assert len(ids) == len(set(ids))
    said = [(message.kind, told.id) for message in world.rounds.said for told in message.alerts]
    opened = Counter(alert for kind, alert in said if kind is MessageKind.OPENED)
    assert set(opened.values()) <= {1}
    assert max(Counter(alert for kind, alert in said if kind is MessageKind.RESOLVED).values(), default=1) == 1
    state: dict[str, MessageKind] = {}
    for kind, alert in said:
        assert (kind is MessageKind.OPENED) == (alert not in state), "the first word, and only the first"
        assert state.get(alert) is not MessageKind.RESOLVED, "nothing after the last word"
        state[alert] = kind
    live = [key.rpartition("/")[0] for key, kind in state.items() if kind is not MessageKind.RESOLVED]
    assert len(live) == len(set(live)), "one open alert for one concern"
    # Everything is well again, and everybody looks: all that was opened ends, once.
    for _ in range(150):
        world.step(60.0, dict.fromkeys(PIPELINES, frozenset()))
    ends = Counter(told.id for one in world.rounds.said if one.kind is MessageKind.RESOLVED for told in one.alerts)
    assert ends == opened | Counter(
        told.id for one in world.rounds.said if one.kind is MessageKind.OPENED for told in one.alerts
    )
    assert world.rounds.memory.alerts == ()


@settings(max_examples=examples(100))
@given(STEPS, st.sampled_from(sorted(CAUSES)), st.booleans())
def test_what_stands_for_long_is_open_or_follows_from_what_is_open(steps: list[Step], name: str, shares: bool) -> None:
    world = World(shares=shares)
    for seconds, wrong, idle in steps:
        world.step(seconds, wrong, idle)
    # Longer than what an alert that came back again and again stays open after its end, and the grace after it.
    for _ in range(110):
        world.step(60.0, {"orders": frozenset({name}), "readings": frozenset()})
    source, _ = CAUSES[name]
    looks = [alert for alert in world.rounds.memory.open if alert.pipeline == "orders"]
    shared = [alert for alert in world.rounds.memory.open if name == alert.shared and "orders" in alert.pipelines]
    assert shared or any(source in alert.named_by for alert in looks), looks


@settings(max_examples=examples(100))
@given(STEPS)
def test_reminders_keep_their_distance(steps: list[Step]) -> None:
    world = World()
    world.rounds.policy = Policy(remind_after_seconds=Reminders(critical=600, warning=600, info=600))
    for seconds, wrong, idle in steps:
        world.step(seconds, wrong, idle)
    told: dict[str, float] = {}
    for message in world.rounds.said:
        for one in message.alerts:
            if message.kind is MessageKind.REMINDER:
                assert message.at - told[one.id] >= 600
            told[one.id] = message.at


def test_the_symptoms_are_those_that_have_something_to_follow_from() -> None:
    assert [name for name in ("lag", "stall", "broker-unavailable", "validation:x") if is_symptom(name)] == ["lag", "stall"]


def test_the_result_of_a_validation_is_told_at_once_and_a_run_that_failed_or_is_late_waits() -> None:
    rounds = Rounds()
    causes = ("delta:lake.orders totals", "run", "late")
    looks = [look(now, *(finding(cause, Severity.CRITICAL) for cause in causes), source="validation") for now in (0.0, 60.0)]
    assert [rounds.at(one.at, one) for one in looks] == [
        ["opened orders delta:lake.orders totals"],
        ["opened orders late run"],
    ]
