"""Readers of files of meanings and messages, a module per format.

A reader is a function of a `File`. It returns the columns that it found, or None if the file is not of its format; the
rule of `icy.languages.tokens` then makes a table of them, the same for all formats.
"""
