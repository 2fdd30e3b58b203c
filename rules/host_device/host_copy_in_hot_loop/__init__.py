"""`host-copy-in-hot-loop` (TL203): the rule, and what only it asks of the model."""
