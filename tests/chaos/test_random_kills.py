"""kill -9 at random moments under load, startup included, lanes in turn. LAKEBOUND_CHAOS_SEED repeats a run.

In the long form alone: in the short one ``test_soak.py`` kills twice so, the second time while it starts.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import TopicMaker
from tests.support.kafka.producing import JournalingProducer, Load
from tests.support.streams.applications import applications, go_on
from tests.support.streams.long_form import only_in_long_form
from tests.support.streams.pipelines import LANES, assert_exactly_once, make_pipeline

from lakebound.local.broker import Broker

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(3600), only_in_long_form]

KILLS = int(os.environ.get("LAKEBOUND_CHAOS_KILLS", "3"))
LONGEST_LIFE_SECONDS = 8.0
SHARE_KILLED_WHILE_STARTING = 0.2


def test_random_kills_under_load_lose_nothing_and_double_nothing(tmp_path: Path, broker: Broker, topic: TopicMaker) -> None:
    seed = int(os.environ.get("LAKEBOUND_CHAOS_SEED", time.time_ns() % 1_000_000))
    print(f"LAKEBOUND_CHAOS_SEED={seed}")
    dice, journal, name = random.Random(seed), Journal(), topic("random")
    pipeline = make_pipeline(tmp_path, broker.bootstrap_servers, name)
    with applications() as starter:
        with Load(JournalingProducer(broker.bootstrap_servers, journal), name, 500):
            for kill in range(KILLS):
                application = starter.start(pipeline.with_lane(LANES[kill % 2]), own_jvm=True)
                while_starting = dice.random() < SHARE_KILLED_WHILE_STARTING
                if not while_starting:
                    application.wait_running()
                # Not a wait for luck: the moment of the kill is what is random here.
                time.sleep(dice.uniform(0, LONGEST_LIFE_SECONDS / (1 if while_starting else 2)))
                application.kill()
                go_on(pipeline)
        last = starter.start(pipeline)
        last.wait_landed(journal.ends(), 240)
        assert last.stop().verdict == "stopped", last
    assert_exactly_once(pipeline, journal)
