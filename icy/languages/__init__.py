"""Meaning spaces and languages: their values, their files, and splits of their meanings."""
