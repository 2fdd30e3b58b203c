"""Fuzzing: programs that nobody wrote, and what must hold of torchlint on every one of them.

    python -m benchmarks.fuzz [--minutes 60] [--seed 0] [--json benchmarks/results/fuzz.json]

Four kinds of programs are made, in turn: those of a grammar of PyTorch-shaped code, which are also run on
the CPU before and after they are fixed; mutants of the fixtures and programs of this project, which are also
put together, nested and given other names; fixtures of rules in layouts that nobody would choose; and syntax,
whatever Python's grammar allows (hypothesmith). ``tests/fuzz/`` runs a few of each in the suite.

`grammar.txt` is the grammar of whole programs and `topics.txt` that of stretches of them, each about some
rules; `grammar` expands both, `layout` lays programs out, `mutations` changes files, `properties` says what
holds, `execution` runs programs, with `stand_ins` for libraries around torch, `reduction` makes a finding
small, and `campaign` is the long run, in a process that is ended if it hangs.
"""
