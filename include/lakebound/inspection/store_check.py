"""Whether the object stores in which tables lie can be used: they answer, they know the keys, and they decide races."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

from lakebound.errors import InvalidWarehousesError, LakeboundError
from lakebound.settings import Settings
from lakebound.spec.warehouse import WarehouseSpec
from lakebound.spec.warehouses_file import load_warehouses
from lakebound.storage.location import Location
from lakebound.storage.race import race

_PROBE = "lakebound-check"


def store_problems(settings: Settings, chosen: Collection[str] | None, *, with_race: bool) -> list[str]:
    """Return what is wrong with the warehouses that lie in object stores.

    Args:
        settings: Of this machine.
        chosen: Names of warehouses; None: all.
        with_race: Let many writers race for files there, which are deleted again; else a store is only asked for one file.
    """
    try:
        known = load_warehouses(settings)
    except InvalidWarehousesError as exc:
        return list(exc.problems)
    stored = {
        name: warehouse for name, warehouse in known.items() if not warehouse.is_local and (chosen is None or name in chosen)
    }
    if not stored:
        return []
    with ThreadPoolExecutor(len(stored)) as pool:
        found = pool.map(lambda named: _problem(*named, with_race=with_race), stored.items())
        return [problem for problem in found if problem]


def _problem(name: str, warehouse: WarehouseSpec, *, with_race: bool) -> str:
    root, told = Location(warehouse.location, warehouse.store), f"warehouse {name!r} ({warehouse.location})"
    try:
        next(root.list(), None)
        (root / _PROBE).exists()
        result = race(root) if with_race else None
    except LakeboundError as exc:
        return f"{told}: {exc}"
    except PermissionError as exc:
        return f"{told}: the store refuses the keys, or what they may do; they must list, read, write and delete: {exc}"
    except OSError as exc:
        return f"{told}: the store does not answer: {exc}"
    if result is None or result.is_safe:
        return ""
    wrong = f"{result.wrong_creates} of {result.create_rounds} races to create a file and {result.wrong_replaces} of "
    wrong += f"{result.replace_rounds} races to replace one did not have exactly one winner"
    return (
        f"{told}: {wrong}. The store does not obey If-None-Match and If-Match, so one of two commits would be lost. Do not put "
        f"tables there; use another store"
    )
