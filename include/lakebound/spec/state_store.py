"""Where the state lies that machines share: LAKEBOUND_STATE says it, and a warehouse of that bucket how it is reached."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import urlsplit

from lakebound.errors import NotWithSharedStateError, SettingError
from lakebound.frozen import Frozen
from lakebound.settings import Settings, load_settings, state_address
from lakebound.spec.warehouse import MACHINES_OWN, StoreSpec
from lakebound.spec.warehouses_file import load_warehouses, warehouses_file


class StateStoreSpec(Frozen):
    """A place in an object store, and how it is reached. Holds no secret, but where secrets are."""

    location: str
    store: StoreSpec | None = None

    @property
    def secret_variables(self) -> tuple[str, ...]:
        """The environment variables that hold its secrets."""
        found = self.store.secrets.values() if self.store is not None else ()
        return tuple(ref.env for ref in found if ref.env is not None)

    @property
    def own_variables(self) -> tuple[str, ...]:
        """The variables by which its client finds the machine's own credentials; none where a file names the keys."""
        return () if self.store is not None and self.store.access_key_id is not None else MACHINES_OWN


def find_state_store(settings: Settings) -> StateStoreSpec | None:
    """Return where the shared state is; None where all state is in LAKEBOUND_HOME.

    Raises:
        SettingError: LAKEBOUND_STATE means nothing, or two warehouses of its bucket are reached in different ways.
        InvalidWarehousesError: ``warehouses.yaml`` is wrong.
    """
    address = state_address()
    if address is None:
        return None
    bucket = _bucket(address)
    of_bucket = {
        name: None if one.store is None else one.store.model_copy(update={"prices": None})
        for name, one in load_warehouses(settings).items()
        if _bucket(one.location) == bucket
    }
    ways = set(of_bucket.values())
    if len(ways) > 1:
        names = ", ".join(sorted(of_bucket))
        raise SettingError(
            "LAKEBOUND_STATE",
            f"the warehouses {names} in {bucket} have different store settings, so it is unclear which of them apply to the "
            f"state",
        )
    return StateStoreSpec(location=address, store=next(iter(ways), None))


def installed_state_store() -> StateStoreSpec | None:
    """Return the same, as the environment of this process says; quick where nothing is shared.

    Raises:
        SettingError: As of ``find_state_store``.
        InvalidWarehousesError: As of ``find_state_store``.
    """
    address = state_address()
    if address is None:
        return None
    settings = load_settings()
    return _known(address, settings, _version(settings))


def refuse_with_shared_state(what: str, instead: str) -> None:
    """Keep something from being done on a folder in which only a part of the state is.

    Args:
        what: What is asked, as the beginning of a sentence.
        instead: What to do, as a sentence.

    Raises:
        NotWithSharedStateError: State is shared.
    """
    if state_address() is not None:
        raise NotWithSharedStateError(what, instead)


@lru_cache(maxsize=8)
def _known(address: str, settings: Settings, version: int | None) -> StateStoreSpec | None:
    return find_state_store(settings)


def _version(settings: Settings) -> int | None:
    try:
        return warehouses_file(settings).stat().st_mtime_ns
    except OSError:
        return None


def _bucket(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"
