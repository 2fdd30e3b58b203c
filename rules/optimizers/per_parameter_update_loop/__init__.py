"""`per-parameter-update-loop` (TL505): the rule, and what only it asks of the model."""
