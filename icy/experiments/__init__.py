"""Experiments: plan, run, and collect probes, sweeps, end-to-end runs and reproductions.

This package registers icy's own kinds of jobs that learn languages. Each is an object in the module that makes its
jobs.
"""

from icy.core.register import register_kind_at

register_kind_at(
    "probe",
    f"{__name__}.probe:PROBE",
    "Train one model on several grammars, each compared with concat.",
    "Perkins21; Icy22",
)
register_kind_at(
    "e2e",
    f"{__name__}.e2e:END_TO_END",
    "Train a sender and a receiver together.",
    "Perkins21 tables 6, 11, 17, 18; Icy22 table 18, figure 7",
)
register_kind_at(
    "chain",
    f"{__name__}.iterate:CHAIN",
    "Pass languages from learner to learner.",
    "Kirby et al. 2014; Griffiths and Kalish 2007",
)
