"""`compile-in-loop` (TL512): the rule, and what only it asks of the model."""
