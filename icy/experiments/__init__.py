"""Experiments: plan, run, and collect probes, sweeps, end-to-end runs and reproductions.

This package registers icy's own kinds of jobs that learn languages. Each is an object in the module that makes its
jobs, which is imported on first use, so that commands that train nothing start fast.
"""

from icy.core.entry import JOB, Entry
from icy.core.registry import registry

for name, place, description, source in (
    ("probe", "probe:PROBE", "Train one model on several grammars, each compared with concat.", "Perkins21; Icy22"),
    (
        *("e2e", "e2e:END_TO_END", "Train a sender and a receiver together."),
        "Perkins21 tables 6, 11, 17, 18; Icy22 table 18, figure 7",
    ),
    (
        *("chain", "iterate:CHAIN", "Pass languages from learner to learner."),
        "Kirby et al. 2014; Griffiths and Kalish 2007",
    ),
):
    registry.add(Entry(JOB, name, f"{__name__}.{place}", description, source, 1, origin=__name__))
