"""Runners: where jobs are trained, in this process, on a pool of workers or on a Ray cluster."""
