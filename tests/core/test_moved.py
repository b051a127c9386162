"""Old addresses of modules still answer, with a warning that says the new one."""

from __future__ import annotations

import importlib

import pytest

from icy.core.moved import MOVED

NAMES = {  # what documentation named at each address
    "icy.analysis.agreement": ["agreement", "end_to_end_agreement"],
    "icy.analysis.games": ["plot_stimuli"],
    "icy.analysis.metrics": ["plot_metrics"],
    "icy.analysis.plots.endtoend": ["e2e"],
    "icy.analysis.matching": ["plot_translation"],
    "icy.devices": ["resolve_device"],
    "icy.endtoend": ["EndToEndSpec", "EndToEndResult", "end_to_end"],
    "icy.errors": ["IcyError", "InvalidSettingError", "UnknownNameError", "listed"],
    "icy.language": ["Language"],
    "icy.long_table": ["to_long", "value_of"],
    "icy.meanings": ["MeaningSpace", "whole_number", "require_memory"],
    "icy.grammars.making": ["make_language"],
    "icy.models.making": ["create", "count_parameters"],
    "icy.noise": ["Noise"],
    "icy.planning": ["ProbeSpec", "Plan", "make_plan"],
    "icy.presets": ["Departure"],
    "icy.probing": ["probe", "run_plan"],
    "icy.provenance": ["git_revision"],
    "icy.reading": ["read_long", "select", "read_results"],
    "icy.registry": ["registry", "Entry", "register_sender", "natural"],
    "icy.representations": ["Representation", "get_representation"],
    "icy.reproducing": ["ReproduceSpec", "Reproduction", "reproduce"],
    "icy.results": ["ProbeResult", "write_tables"],
    "icy.s2b.evaluating": ["evaluate"],
    "icy.splits": ["Split"],
    "icy.store": ["Store", "record_key"],
    "icy.streams": ["stream_key"],
    "icy.sweeping": ["SweepSpec", "sweep"],
    "icy.tracking": ["Tracker", "make_tracker"],
    "icy.training.protocols": ["Protocol", "get_protocol"],
    "icy.training.settings": ["TrainingSettings", "settings_for"],
    "icy.watcher": ["Watcher"],
}


def test_every_address_is_tested() -> None:
    assert set(NAMES) == set(MOVED)


def test_old_addresses(subtests: pytest.Subtests) -> None:
    for address, name in [(address, name) for address, names in NAMES.items() for name in names]:
        with subtests.test(f"{address}.{name}"):
            old = importlib.import_module(address)
            with pytest.warns(FutureWarning, match=rf"{address}.{name} is now icy\.\w+\.[\w.]*{name}") as warned:
                found = getattr(old, name)
            message = next(str(warning.message) for warning in warned if warning.category is FutureWarning)
            new = message.partition(" is now ")[2].rpartition(".")[0]
            assert found is getattr(importlib.import_module(new), name)


def test_names_that_never_were() -> None:
    with pytest.raises(AttributeError, match=r"'icy.store', now icy.records.store, has no attribute 'Shop'"):
        importlib.import_module("icy.store").Shop  # noqa: B018
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("icy.stores")
