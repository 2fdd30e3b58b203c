"""`repeated-transfer` (TL208): the rule, and what only it asks of the model."""
