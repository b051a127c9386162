"""Experiments: plan, run, and collect probes, sweeps, end-to-end runs and reproductions."""
