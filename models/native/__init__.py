"""Native programs: a model's forward pass, traced into a program of a few operations that compiled C++ runs.

`trace` writes down what a model does, `lower` with `operations` turns it into operations of a `builder`, `program`
gives each a place in memory, and `calls` runs the library that is built of the C++ sources where there is a compiler
(icy.core.native).
"""
