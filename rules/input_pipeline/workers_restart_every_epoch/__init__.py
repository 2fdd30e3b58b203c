"""`workers-restart-every-epoch` (TL104): the rule, and what only it asks of the model."""
