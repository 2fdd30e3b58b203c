"""`unsafe-checkpoint-load` (TL904): the rule, and what only it asks of the model."""
