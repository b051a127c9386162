"""Native programs: a model's forward pass, traced and lowered to a program of a few operations that C++ code runs.

`lower` records the operations of a model, and with `lower_*` converts them to operations of a `builder`.
`program` places their data in memory. `calls` runs the library built from the C++ sources, if there is a compiler
(icy.core.native).
"""
