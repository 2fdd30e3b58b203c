"""`pointwise-chain-uncompiled` (TL511): the rule, and what only it asks of the model."""
