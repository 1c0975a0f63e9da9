"""``lakebound alerts``: what is open, what waits to be delivered, and a test of the way to people."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakebound.cli.output import Json, duration, print_json, print_rows, say, show

if TYPE_CHECKING:
    from lakebound.alerts.model import Alert
    from lakebound.alerts.store import AlertState, Delivery
    from lakebound.settings import Settings


def alerts(
    pipeline: Annotated[str | None, typer.Argument(help="Pipeline name. Default: all pipelines.")] = None,
    test: Annotated[bool, typer.Option("--test", help="Send a test message through the real channels instead.")] = False,
    channel: Annotated[str | None, typer.Option(help="With --test: only this channel of alerts.yaml.")] = None,
    json: Json = False,
) -> None:
    """Show the open alerts and the undelivered messages. With --test: exit code 1 if a channel did not accept the message."""
    from lakebound.alerts.store import AlertStore
    from lakebound.settings import load_settings

    settings = load_settings()
    if test:
        _test(settings, pipeline, channel, json)
        return
    if channel is not None:
        raise typer.BadParameter("--channel needs --test")
    state = AlertStore(settings.home).read()
    found = [alert for alert in state.memory.open if pipeline is None or alert.is_about(pipeline)]
    if json:
        print_json(
            {
                "alerts": [_body(alert) for alert in found],
                "waiting": [_waiting(delivery) for delivery in state.outbox],
                "round_at": state.round_at or None,
                "dropped": state.dropped,
            }
        )
        return
    _print(found, state)


def _test(settings: Settings, pipeline: str | None, channel: str | None, json: bool) -> None:
    from lakebound.alerts.try_out import send_test
    from lakebound.spec.load import load_pipelines

    name = pipeline or next(iter(load_pipelines(settings).specs), "no pipeline")
    say("alerts: sending a test (Airflow's notifiers take a few seconds to load)")
    result = send_test(settings, name, channel)
    if json:
        print_json(result.model_dump(mode="json"))
    else:
        for reached, problem in result.channels.items():
            show(f"{reached}: " + (f"not delivered: {problem}" if problem else "delivered"))
        show(f"message {result.id}")
    raise typer.Exit(1 if any(result.channels.values()) else 0)


def _body(alert: Alert) -> dict[str, Any]:
    return {"id": alert.id, **alert.model_dump(mode="json")}


def _waiting(delivery: Delivery) -> dict[str, Any]:
    return {
        "channel": delivery.channel,
        "message": delivery.message.id,
        "kind": delivery.message.kind.value,
        "pipeline": delivery.message.pipeline,
        "tries": delivery.tries,
        "problem": delivery.problem,
    }


def _print(found: list[Alert], state: AlertState) -> None:
    now = time.time()
    if found:
        rows = [
            (
                alert.severity.value,
                alert.pipeline,
                duration(now - alert.since),
                alert.lead.partition(":")[0],
                alert.what.splitlines()[0],
                alert.runbook or "-",
            )
            for alert in found
        ]
        print_rows(("SEVERITY", "PIPELINE", "SINCE", "FOUND BY", "WHAT", "RUNBOOK"), rows, right=("SINCE",))
    else:
        show(
            "no open alerts" if state.round_at else "no open alerts: neither the DAG 'alerts' nor `lakebound watch` has run yet"
        )
    waiting: dict[str, list[Delivery]] = {}
    for delivery in state.outbox:
        waiting.setdefault(delivery.channel, []).append(delivery)
    for channel, own in waiting.items():
        if own[0].is_unconnected:
            messages = "1 message reaches" if len(own) == 1 else f"{len(own)} messages reach"
            show(f"no channel is set up, so {messages} nobody: see docs/how-to/alerts.md (connection of {channel})")
            continue
        show(f"undelivered messages for channel {channel}: {len(own)}; reason: {own[0].problem or 'no delivery attempt yet'}")
    if state.dropped:
        show(f"{state.dropped} messages were dropped: their channel did not accept them in time")
    if state.round_at and now - state.round_at > 600:
        show(
            f"the last check was {duration(now - state.round_at)} ago; check that the DAG 'alerts' is unpaused, or that "
            f"`lakebound watch` runs"
        )
