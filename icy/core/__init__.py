"""Foundations that every other package uses: registry, errors, checks, random streams, devices, files."""
