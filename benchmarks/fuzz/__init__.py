"""Fuzzing: programs that nobody wrote, and what must hold of torchlint on every one of them.

    python -m benchmarks.fuzz [--minutes 60] [--seed 0] [--json benchmarks/results/fuzz.json]

Three kinds of programs are made, in turn: those of a grammar of PyTorch-shaped code, which are also run on
the CPU before and after they are fixed; mutants of the fixtures and programs of this project; and syntax,
whatever Python's grammar allows (hypothesmith). ``tests/fuzz/`` runs a few of each in the suite.

`grammar.txt` is the grammar, `grammar` expands it and lays it out, `mutations` changes files, `properties`
says what holds, `execution` runs programs, `reduction` makes a finding small, and `campaign` is the long
run, in a process that is ended if it hangs.
"""
