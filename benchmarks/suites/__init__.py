"""Whether torchlint's fixes break packages, as told by the packages' own tests.

    python -m benchmarks.suites --json benchmarks/results/suites.json

For each source distribution that ``suites.toml`` pins: unpack it, run its own tests, apply the safe fixes
to a copy of it as a project (tests and examples included, as a user who fixes a whole checkout does) and
run them again, and the same with the unsafe fixes, unless ``--safe-only`` says otherwise. A test that
passed before and does not afterwards is run again on both copies, so that one that fails now and then is
told apart, and then with the fixes of one rule at a time, which names the rule that lost it. No test may
be lost to a safe fix; ``suites.toml`` says why of each that is lost to an unsafe one, and the status is 1
where it does not.

The packages are installed into an environment of their own, whose contents ``requirements.txt`` pins. Their
tests run without a network and without a GPU, so that those which need one are skipped or fail before and
after alike; the report counts them.
"""
