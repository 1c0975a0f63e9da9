"""Arms that run one after the other, in turn, for some rounds; an outside reader measures the freshness of each."""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from running import cpu_seconds_of, family_of, own_broker

from lakebound.control.processes import wait_until
from lakebound.inspection.visible_freshness import FreshnessObserver, VisibleFreshness
from lakebound.landing.run_spec import RunSpec
from lakebound.local.broker import Broker
from lakebound.settings import Settings
from lakebound.tables.table import open_table


@dataclass(frozen=True)
class Plan:
    """What one run of a benchmark does."""

    rate: int
    record_bytes: int
    warm_up_seconds: float
    seconds: float
    rounds: int


@dataclass(frozen=True)
class Result:
    """One arm of one round; CPU seconds and memory are of the application's JVM and Python in the measured time."""

    arm: str
    tables: dict[str, VisibleFreshness]
    cpu_seconds: float
    peak_rss_megabytes: int
    generator_cpu_seconds: float


RunArm = Callable[[str, int, Plan, Settings, Broker], Result]


def measure(
    arm: str,
    run: RunSpec,
    plan: Plan,
    app: subprocess.Popen[bytes],
    generator: subprocess.Popen[bytes],
    *,
    start_seconds: float,
    settle_seconds: float,
) -> Result:
    """Return what an outside reader sees of a running application; the generator is ended.

    Args:
        arm: Its name.
        run: What the application was told.
        plan: How long it is looked at.
        app: The application.
        generator: Makes its records.
        start_seconds: How long the first rows may take.
        settle_seconds: In which what was produced in the measured time becomes visible.
    """
    wait_until(lambda: has_rows(run), start_seconds, f"the first rows of the arm {arm}")
    time.sleep(plan.warm_up_seconds)
    with FreshnessObserver(run.places, run.spec.tables) as observer:
        started_ms = time.time() * 1000
        before = cpu_seconds_of(app.pid)
        time.sleep(plan.seconds)
        cpu_seconds, rss = cpu_seconds_of(app.pid) - before, _rss_megabytes_of(app.pid)
        time.sleep(settle_seconds)
    tables = observer.measure(produced_after_ms=started_ms)
    generator.send_signal(signal.SIGTERM)
    produced = json.loads(generator.communicate(timeout=30)[0])
    return Result(arm, tables, cpu_seconds, rss, produced["cpu_seconds"])


def make_page(
    about: str | None, arms: Sequence[str], run_arm: RunArm, report: Callable[[Plan, list[Result]], str], page: str, rounds: int
) -> None:
    """Run all arms as the command line says, print what came out, and write the page.

    Args:
        about: What the command's help says.
        arms: Their names.
        run_arm: Runs one of them, by its name and the number of the run.
        report: Makes the page.
        page: Where it is written by default.
        rounds: How many there are by default.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--rate", type=int, default=2000)
    parser.add_argument("--record-bytes", type=int, default=180)
    parser.add_argument("--warm-up-seconds", type=float, default=30)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--page", type=Path, default=Path(page))
    args = vars(parser.parse_args())
    file: Path = args.pop("page")
    plan = Plan(**args)
    results = []
    with own_broker() as (base, broker):
        for number in range(plan.rounds * len(arms)):
            arm = arms[number % len(arms)]
            print(f"bench: round {number // len(arms) + 1}, {arm}", flush=True)
            results.append(run_arm(arm, number, plan, base, broker))
            print(json.dumps(asdict(results[-1])), flush=True)
    text = report(plan, results)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    print(text)


def has_rows(run: RunSpec) -> bool:
    table = open_table(run.spec.tables[0], run.places)
    return table.exists() and table.scan_kafka().num_rows > 0


def _rss_megabytes_of(pid: int) -> int:
    return sum(process.memory_info().rss for process in family_of(pid)) // 1_000_000
