"""How long torchlint and other linters take, and how much memory, all on the same files in the same run.

    python -m benchmarks.peers                                # timm's files, three rounds
    python -m benchmarks.peers --tree timm --tree transformers --rounds 5
    python -m benchmarks.peers --only ruff --only torchlint --rounds 1 --json peers.json

The peers of ``pins.txt`` are installed with pip, each in a virtual environment of its own in the user's cache
folder. A tree is the files of a package of the corpus that mention torch, and nothing else; no configuration
is near, and torch is not installed beside the peers. In each round every command runs once, forwards in one
round and backwards in the next, so that a slow moment of the machine meets all alike.

Every tool is run with its default rules and output, in one process where it has a setting for that, and as
it comes. *Cold* is the first run, with an empty cache that is filled; *warm* is another run over the same
files. A tool whose first run takes long is run in fewer rounds, and one that is stopped, fails or cannot be
installed is in the results with the reason. ``python -m torchlint.dev generate`` makes the table and the plot
of README.md from ``benchmarks/results/peers.json``.
"""
