"""`tensor-indexed-in-loop` (TL412): the rule, and what only it asks of the model."""
