"""Whether a stream tells its lineage: where the environment asks for it, and nothing is wrong with what it says."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from lakebound.errors import SettingError
from lakebound.landing.lineage_settings import load_lineage_settings
from lakebound.landing.run_spec import RunSpec
from lakebound.settings import lineage_interval_seconds

if TYPE_CHECKING:
    from lakebound_spark.stream.lineage import StreamLineage

log = logging.getLogger(__name__)


def chosen_lineage(run: RunSpec) -> StreamLineage | None:
    """Return what tells the application's lineage; None where nothing is to be sent, or where it cannot be.

    A wrong setting never keeps a stream from starting: it is one line in the application's log.
    """
    try:
        settings, interval_seconds = load_lineage_settings(), lineage_interval_seconds()
        if not settings.is_on:
            return None
        # OpenLineage's client takes most of a second to load: here that is while Spark starts.
        from lakebound_spark.stream.lineage import StreamLineage

        return StreamLineage(run, settings, interval_seconds)
    except (SettingError, ImportError) as exc:
        log.warning("lineage: nothing is sent: %s", exc)
        return None
