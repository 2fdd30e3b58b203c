"""The harness: proves on the user's own machine what torchlint's fixes are worth.

The way of the data: ``variants`` makes the programs to compare, with torchlint's own fixer → ``workspace``
gives each run a copy of the project → ``processes`` starts ``worker`` in fresh processes and steers them →
``measure`` examines the variants (same results, evidence) and then times them → ``stats`` and ``judge`` turn
block times into verdicts → ``results`` is what is kept, printed and drawn. ``ranks`` steers the processes of
a program that has several as if they were one; ``launch`` asks accelerate how it would start one.

Only ``worker`` imports torch, and it runs in processes of its own. The coordinator needs numpy, cattrs,
jinja2 and matplotlib, which the extra ``verify`` brings.
"""
