"""How the time of a check grows with the size of the file, whatever the file looks like.

    python -m benchmarks.growth [SHAPE …] [--scale 1.0] [--limit 60]

`shapes` makes texts of many shapes: many calls in one loop, many functions, deep chains of calls, all
fixtures repeatedly. Each is checked with all rules at three sizes, ``n``, ``2n`` and ``4n``. `measuring`
tells the CPU seconds of each, how they grow (the exponent ``e`` in ``seconds ~ characters ** e``, between the
smallest and the largest text), and which rules take how much of the largest and how their part grows. What
several rules ask of the model counts as the time of the first. A shape is given up when its next size would
take longer than the limit. Without shapes all of them are measured, and written to
`benchmarks/results/growth.json`.
"""
