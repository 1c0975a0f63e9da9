"""``lakebound redo --undo``: the very rows that the newest redo replaced come back."""

from __future__ import annotations

import shlex

from lakebound.cli.output import number, print_json, print_rows, say, show


def undo_newest(pipeline: str, apply: str | None, *, json: bool) -> None:
    """Show the plan, or apply it.

    Args:
        pipeline: The pipeline's name.
        apply: Hash of the plan that is applied; None: it is shown.
        json: Whether the answer is JSON.
    """
    from lakebound.control.folder import ControlFolder
    from lakebound.control.person import operating_system_user
    from lakebound.operations.redo.apply import apply_undo_of_redo, is_recorded
    from lakebound.operations.redo.undo_facts import prepare_undo
    from lakebound.settings import load_settings
    from lakebound.tables.declared import owned_pipeline
    from lakebound.tables.places import places_of

    settings = load_settings()
    spec = owned_pipeline(pipeline, settings)
    places = places_of(settings, spec.warehouse)
    if apply is None:
        plan = prepare_undo(spec, places)
        command = shlex.join(["lakebound", "redo", pipeline, "--undo", "--apply", plan.hash])
        if json:
            print_json({**plan.model_dump(mode="json"), "hash": plan.hash, "apply": command})
            return
        for line in plan.lines():
            show(line)
        is_told = plan.is_done and is_recorded(ControlFolder(places.home, spec.pipeline, places.state), plan.hash)
        show("\nAll of it is back already." if is_told else f"\nPlan {plan.hash}. To apply it: {command}")
        return
    say(f"redo: undoing by plan {apply}")
    user = operating_system_user()
    rows = apply_undo_of_redo(spec, places, apply, by=user, asked_by=user).facts["rows"]
    if json:
        print_json({"hash": apply, "rows": rows})
        return
    print_rows(("TABLE", "ROWS"), [(table, number(came)) for table, came in rows.items()], right=("ROWS",))
