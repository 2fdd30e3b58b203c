"""`legacy-variable` (TL310): the rule, and what only it asks of the model."""
