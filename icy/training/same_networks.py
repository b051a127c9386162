"""Rows that train the same network, because they differ only in a factor that their model does not have."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from icy.core.text import listed
from icy.records.record import config_text

from .job import Job

log = logging.getLogger(__name__)
SAME_FOR_RECEIVERS = ("soft", "gs", "qt", "cb")  # representations with one loss of receivers, which read tokens
WHY = {"hidden size": "has no hidden layer", "representation": "learns alike in several representations"}
OF_MESSAGES = ("symbols", "tau", "straight_through", "levels", "normalise")  # settings that receivers do not read


def warn_of_same_networks(jobs: Iterable[Job]) -> None:
    """Warn of rows that train the same network, since their results are not separate data."""
    rows: dict[str, list[Job]] = {}
    for job in jobs:
        if job.replicates:
            rows.setdefault(_network(job), []).append(job)
    values: dict[tuple[str, str], dict[str, None]] = {}
    for alike in rows.values():
        for factor in WHY:
            own = dict.fromkeys(job.facts.get(factor, "") for job in alike)
            if len(own) > 1:
                values.setdefault((alike[0].name, factor), {}).update(own)
    for (name, factor), found in values.items():
        which = listed([*found])
        log.warning("%s %s: its rows with %s %s are the same, not separate data.", name, WHY[factor], factor, which)


def _network(job: Job) -> str:
    """Return the configuration of a job's first replicate, without factors that the model does not have.

    Models of one name that have the same number of parameters at several hidden sizes have no hidden layer.
    """
    config, count = dict(job.config(job.replicates[0])), job.parameters.get("true")
    if count is not None:
        config["hidden_size"] = None
    if (
        job.kind == "probe" and job.side == "receiver" and config["representation"] in SAME_FOR_RECEIVERS
    ) or count == 0:
        config["representation"] = None
        config["settings"] = {n: v for n, v in config.get("settings", {}).items() if n not in OF_MESSAGES}
    return config_text({**config, "kind": job.kind, "parameters": count})
