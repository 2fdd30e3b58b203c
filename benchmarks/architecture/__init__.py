"""Measures of how torchlint is built: ``python -m benchmarks.architecture``.

Everything is read from the source with ``ast``; nothing that is measured is imported. Each measure is a
function of `sources.Sources` with its definition in its docstring, and lists the places that it counts:
``--details NAME`` prints them.
"""
