"""Old addresses of modules: importing one warns, and gives what is at the new address.

They answer for one minor version, 0.2; this module goes with 0.3.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

# The old address: the new one, and others that hold a part of what the old module held.
MOVED: dict[str, tuple[str, ...]] = {
    "icy.analysis.agreement": ("icy.analysis.literature.agreement",),
    "icy.analysis.games": ("icy.analysis.tables.s2b", "icy.analysis.plots.stimuli"),
    "icy.analysis.metrics": ("icy.analysis.tables.metrics", "icy.analysis.plots.metric_bars"),
    "icy.analysis.plots.endtoend": ("icy.analysis.plots.end_to_end",),
    "icy.analysis.matching": ("icy.analysis.plots.translation",),
    "icy.devices": ("icy.core.devices",),
    "icy.endtoend": ("icy.experiments.end_to_end", "icy.experiments.results", "icy.config.specs"),
    "icy.errors": ("icy.core.errors", "icy.core.text"),
    "icy.language": ("icy.languages.language",),
    "icy.long_table": ("icy.records.long_table", "icy.records.record"),
    "icy.meanings": ("icy.languages.meanings", "icy.core.checks", "icy.core.memory"),
    "icy.grammars.making": ("icy.grammars.factory",),
    "icy.models.making": ("icy.models.factory",),
    "icy.noise": ("icy.core.noise",),
    "icy.planning": ("icy.experiments.plan", "icy.experiments.probe", "icy.config.specs"),
    "icy.presets": ("icy.config.presets",),
    "icy.probing": ("icy.experiments.probe", "icy.experiments.run"),
    "icy.provenance": ("icy.core.provenance",),
    "icy.reading": ("icy.records.load", "icy.records.select", "icy.experiments.results"),
    "icy.registry": ("icy.core.registry", "icy.core.entry", "icy.core.text"),
    "icy.representations": ("icy.core.representations",),
    "icy.reproducing": ("icy.experiments.reproduce", "icy.experiments.reproduction", "icy.config.specs"),
    "icy.results": ("icy.experiments.results", "icy.records.long_table"),
    "icy.s2b.evaluating": ("icy.s2b.evaluation",),
    "icy.splits": ("icy.languages.splits",),
    "icy.store": ("icy.records.store", "icy.records.record", "icy.core.files"),
    "icy.streams": ("icy.core.streams",),
    "icy.sweeping": ("icy.experiments.sweep", "icy.config.specs"),
    "icy.tracking": ("icy.experiments.trackers.base", "icy.experiments.trackers.make"),
    "icy.training.protocols": ("icy.config.protocols",),
    "icy.training.settings": ("icy.config.settings",),
    "icy.watcher": ("icy.experiments.watcher",),
}


class _MovedModule(ModuleType):
    """Stands at an old address and takes its attributes from the new ones."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            for address in MOVED[self.__name__]:
                module = importlib.import_module(address)
                if hasattr(module, name):
                    warnings.warn(f"{self.__name__}.{name} is now {address}.{name}", FutureWarning, stacklevel=2)
                    return getattr(module, name)
        raise AttributeError(f"module '{self.__name__}', now {MOVED[self.__name__][0]}, has no attribute '{name}'")


class _MovedFinder(MetaPathFinder, Loader):
    """Finds the modules at old addresses."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in MOVED else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _MovedModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def answer_old_addresses() -> None:
    """Let old addresses be imported; they are asked for only where no module of that name is found."""
    if not any(isinstance(finder, _MovedFinder) for finder in sys.meta_path):
        sys.meta_path.append(_MovedFinder())
