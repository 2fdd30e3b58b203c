"""`hand-written-attention` (TL402): the rule, and what only it asks of the model."""
