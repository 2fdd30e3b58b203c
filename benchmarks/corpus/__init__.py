"""torchlint on real code that nobody here wrote: how often its findings are true, and that its fixes hold.

    python -m benchmarks.corpus fetch                 # download and unpack the pinned packages
    python -m benchmarks.corpus lint                  # lint them; writes findings.json beside them
    python -m benchmarks.corpus sample TL202          # findings of a rule, to be read by hand
    python -m benchmarks.corpus fixcheck              # fix copies of them and check every byte
    python -m benchmarks.corpus sound                 # check them with and without screen and outline
    python -m benchmarks.corpus compare --before REF  # set two versions side by side
    python -m benchmarks.corpus table                 # precision by rule, from the tally in tally/

All commands work in one folder, ``--folder``, by default the user's cache folder; third-party source
never enters the repository. A tally file ``tally/<CODE>.csv`` has the columns package, version, read, true,
false and why: how many of the sampled findings were read, how many of them an engineer would act on, and
what was wrong with the others.
"""
